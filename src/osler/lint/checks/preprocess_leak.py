"""A step that learned from rows on which the model is judged afterwards."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence, Severity
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.leakage import (
    CROSS,
    LISTS,
    SUPERVISED,
    Learned,
    Rows,
    Split,
    cross_fitted,
    drawn,
    learned,
    learner,
    rows,
    some_rows,
)
from osler.syntax.values import Site, Value, alternatives, slice_back

RULE = "preprocess-leak"
CALLS = frozenset(
    {"train_test_split", "split", "predict", "score", "evaluate", "partial_fit", *(c.rpartition(".")[2] for c in CROSS)}
)


def check(facts: Facts) -> Iterator[Hit]:
    """Each place at which something is learned from rows that are split, or judged, later."""
    for one in rows(facts):
        for split in one.splits:
            tested = one.tested(split)
            yield from _before(one, split, tested)
            yield from _beside(one, split, tested)
            if split.folds:
                yield from _carried_on(one, split)
        for event in one.events:
            if event.name in CROSS and (given := event.argument(1, "X")) is not None:
                for found in _carried(given, one):
                    yield _hit(found, event.site, "cross-validated", Confidence.DEFINITE, one)


def _before(one: Rows, split: Split, tested: list[Value]) -> Iterator[Hit]:
    """What is split carries something that was learned from all of it."""
    ids = {id(v) for rows_ in tested for v in slice_back(rows_)}
    for base in split.bases:
        for found in _carried(base, one):
            if found.event is not None and found.event.order > split.order and not split.folds:
                continue
            if found.rows is not None and split.sides(found.rows) == {0}:
                continue  # fitted on the training part, applied to all rows
            if id(found.made) in ids:
                yield _hit(found, split.site, "split", Confidence.DEFINITE, one)
            else:
                yield _hit(found, split.site, "split", Confidence.POSSIBLE, one)


def _carried(base: Value, one: Rows) -> Iterator[Learned]:
    for value in slice_back(base):
        found = learned(value, one)
        if found is not None and found.event is not None and (found.rows is None or not some_rows(found.rows)):
            yield found


def _beside(one: Rows, split: Split, tested: list[Value]) -> Iterator[Hit]:
    """A test part goes through a step that was fitted on it, or on all rows."""
    upstream = {id(b) for b in split.bases}
    for rows_ in tested:
        for value in slice_back(rows_):
            if value.name not in (".transform", ".fit_transform") or 1 not in split.sides(value):
                continue
            found = learned(value, one)
            if found is None or found.event is None or found.rows is None or found.statistic:
                continue
            sides = split.sides(found.rows)
            if 1 in sides:
                yield _hit(found, split.site, "test", Confidence.DEFINITE, one)
            elif not sides and any(id(v) in upstream for v in _raw(found.rows)):
                yield _hit(found, split.site, "split", Confidence.DEFINITE, one)


def _carried_on(one: Rows, split: Split) -> Iterator[Hit]:
    """A step made before the loop over folds goes on learning in each of them."""
    for event in one.events:
        loop = next((n for n in event.loops() if n.over is not None and split.gives(n.over)), None)
        receiver = event.receiver
        if event.name != ".partial_fit" or loop is None or receiver is None:
            continue
        what = learner(receiver)
        made = alternatives(receiver)
        if what is None or not event.arguments or not all(v.order < loop.order for v in made):
            continue
        yield Hit(
            event.site,
            f"{what} is made before the loop over folds ({line_of(loop.site)}) and goes on learning here in each: what one "
            "fold holds out it has seen in another.",
            "Make the step inside the loop, or use `fit`, which starts afresh.",
            evidence={"step": what, "split": split.site},
        )


def _raw(value: Value) -> Iterator[Value]:
    """The value and what it was read out of column by column: the same rows."""
    yield from slice_back(value, lambda v: v.name in (".values", ".to_numpy", ".astype", ".reshape"), limit=20)


def _hit(found: Learned, split: Site, how: str, confidence: Confidence, one: Rows) -> Hit:
    event = found.event
    assert event is not None
    severity = Severity.ERROR if found.what in SUPERVISED else Severity.INFO if found.what in LISTS else None
    named = f"The {found.what} of all rows is taken here" if found.statistic else f"{found.what} is fitted here"
    if how == "test":
        message = f"{named} on the test part of the split in {line_of(split)}, on which the model is then judged."
        advice = f"Fit on the training part only; call `transform` on the test part ({line_of(event.site)})."
    elif how == "cross-validated":
        message = f"{named} on rows that are cross-validated in {line_of(split)}: each fold's test rows are in it."
        advice = f"Give {line_of(split)} a Pipeline of the step and the model, so that each fold fits its own."
    else:
        judged = "" if confidence is Confidence.POSSIBLE else " and the model is judged on its test part"
        message = f"{named} on rows that are split only in {line_of(split)}{judged}."
        advice = f"Split first ({line_of(split)}), then take it from the training part and apply it to both."
    if found.statistic and confidence is Confidence.DEFINITE:
        confidence = Confidence.PROBABLE
    if severity is not Severity.ERROR and found.rows is not None and drawn(found.rows):
        confidence = Confidence.POSSIBLE
    if cross_fitted(found.made):
        severity, confidence = None, Confidence.POSSIBLE
    return Hit(event.site, message, advice, confidence, severity, evidence={"step": found.what, "split": split})
