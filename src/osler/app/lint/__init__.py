"""`osler lint`: the faults that the source shows, with their fixes, as text, annotations or files.

A run that finds nothing changed must answer within a few tenths of a second: what only a cold run, a fix or a written
report needs is imported where it is used.
"""

from osler.app.lint.command import lint
from osler.app.lint.wishes import FORMATS, Wishes

__all__ = ["FORMATS", "Wishes", "lint"]
