"""Which parts of a diagnosis are shown, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from osler.core.diagnosis import Place
from osler.core.finding import Confidence
from osler.core.report import Report
from osler.core.rule import Rule


@dataclass(frozen=True, slots=True)
class Outline:
    """The roots to show and those held back because nothing in them is more than `possible`."""

    roots: list[Place]
    held_back: list[Place]


def outline(report: Report, rules: Mapping[str, Rule], *, all: bool = False) -> Outline:
    """The report's roots, split into what is shown and what is held back unless `all`.

    A `possible` cause of a surer symptom is shown: hiding it would hide the symptom too.
    """
    roots = report.diagnosis(rules).roots
    return Outline(
        [r for r in roots if all or shown(r)],
        [] if all else [r for r in roots if not shown(r)],
    )


def shown(place: Place) -> bool:
    """Whether the finding, or one that follows from it, is more than `possible`."""
    return any(p.finding.confidence > Confidence.POSSIBLE for _, p in below(place, itself=True))


def below(place: Place, *, itself: bool = False) -> Iterator[tuple[int, Place]]:
    """The symptoms of a place with their depth (1 for its own), each before those that follow from it."""
    stack = [(0, place)]
    while stack:
        depth, current = stack.pop()
        if depth or itself:
            yield depth, current
        stack.extend((depth + 1, s) for s in reversed(current.symptoms))
