"""Rules of this family."""

from __future__ import annotations

from osler.core.rule import Rule

RULES: tuple[Rule, ...] = ()
