"""The rules, one module per section of the catalogue."""

from __future__ import annotations

import difflib

from osler.catalogue import data, gradients, loop, numbers, source
from osler.core.rule import Rule

RULES: dict[str, Rule] = {
    rule.name: rule for section in (numbers, gradients, loop, data, source) for rule in section.RULES
}


class UnknownRule(ValueError):
    """A name that is no rule; the message offers the closest ones."""


def rule(name: str) -> Rule:
    """The rule of that name.

    Raises:
        UnknownRule: there is none.
    """
    try:
        return RULES[name]
    except KeyError:
        close = difflib.get_close_matches(name, RULES, n=3, cutoff=0.5)
        hint = f"; closest: {', '.join(close)}" if close else "; `osler explain` lists them all"
        raise UnknownRule(f"no rule is called {name!r}{hint}") from None
