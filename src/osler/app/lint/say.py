"""A line on stderr, which must never be what `osler lint` fails at."""

from __future__ import annotations

import contextlib
import sys

from osler.render import words


def say(line: str) -> None:
    """One line on stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"osler: {words.one_line(line)}\n")
        sys.stderr.flush()
