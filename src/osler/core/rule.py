"""A rule: one fault that osler can name. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from osler.core.finding import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault.

    Attributes:
        name: kebab-case; the contract with users, never reused for another meaning.
        part: the section of the catalogue it belongs to, e.g. `numbers`.
        severity: how bad an occurrence usually is.
        summary: one line, what the fault is.
        why: a paragraph, why it hurts, for someone who has never met it.
        fix: a paragraph, how to mend it.
        bad: a few lines of code that have the fault.
        good: the same lines, mended.
        limits: when osler stays silent about it and what it cannot see.
        causes: names of the rules that this fault brings about.
        routes: how it can be noticed: `run`, `lint`, `check`, `watch`.
        links: documentation and papers.
    """

    name: str
    part: str
    severity: Severity
    summary: str
    why: str
    fix: str
    bad: str
    good: str
    limits: str
    causes: tuple[str, ...] = ()
    routes: tuple[str, ...] = ("run",)
    links: tuple[str, ...] = ()
