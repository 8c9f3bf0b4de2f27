"""Faults seen in the source: facts out of `osler.syntax`, one module a rule, files and notebooks, fixes."""
