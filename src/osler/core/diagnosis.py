"""Causes with their symptoms: users see one cause, not thirty alarms.

A is the cause of B when the catalogue has the edge (A's rule `causes` B's rule), A began no later than B, and both touch
the same tensor, module, optimizer, column or rank. Where either has no step, or neither says what it touches, the same
subject is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from osler.core.finding import Finding


@dataclass(slots=True, eq=False)
class Place:
    """A finding in its place in the diagnosis."""

    id: str
    finding: Finding
    cause: Place | None = None
    symptoms: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Diagnosis:
    """The roots, most severe and earliest first, each with its symptoms below it."""

    roots: list[Place]

    def in_order(self) -> Iterator[Place]:
        """Every place, each cause before its symptoms."""
        stack = list(reversed(self.roots))
        while stack:
            place = stack.pop()
            yield place
            stack.extend(reversed(place.symptoms))


def diagnose(findings: Sequence[Finding], causes: Mapping[str, frozenset[str]]) -> Diagnosis:
    """Arrange findings as a forest.

    Args:
        findings: in the order in which they were seen; ids `F1`, `F2` … follow it.
        causes: for each rule the rules it brings about; the edges form no circle.
    """
    places = [Place(f"F{i}", f) for i, f in enumerate(findings, 1)]
    for place in places:
        candidates = [p for p in places if p is not place and _brings_about(p.finding, place.finding, causes)]
        if candidates:
            # The nearest cause reads best: of two that qualify, the one that itself follows from the other.
            best = max(candidates, key=lambda p: (_depth(p.finding.rule, candidates, causes), -_step(p.finding)))
            place.cause = best
            best.symptoms.append(place)
    for place in places:
        place.symptoms.sort(key=_rank)
    return Diagnosis(sorted((p for p in places if p.cause is None), key=_rank))


def _brings_about(a: Finding, b: Finding, causes: Mapping[str, frozenset[str]]) -> bool:
    if b.rule not in causes.get(a.rule, frozenset()):
        return False
    if a.first_step is not None and b.first_step is not None and a.first_step > b.first_step:
        return False
    return not a.touches or not b.touches or not a.touches.isdisjoint(b.touches)


def _depth(rule: str, candidates: Sequence[Place], causes: Mapping[str, frozenset[str]]) -> int:
    """How many of the other candidates' rules lead to this one: the larger, the nearer to the symptom."""
    return sum(rule in causes.get(other.finding.rule, frozenset()) for other in candidates)


def _step(finding: Finding) -> int:
    return -1 if finding.first_step is None else finding.first_step


def _rank(place: Place) -> tuple[int, int, int]:
    return (-place.finding.severity, _step(place.finding), int(place.id[1:]))
