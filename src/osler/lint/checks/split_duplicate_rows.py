"""Rows copied before the split: oversampled, resampled with replacement."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.leakage import CROSS, Rows, Split, rows
from osler.syntax.values import CONSTANT, INSTANCE, Site, Value, alternatives, slice_back

RULE = "split-duplicate-rows"
CALLS = frozenset({"fit_resample", "fit_sample", "resample", "sample"})

_COPIES = ("imblearn.over_sampling.", "imblearn.combine.")


def check(facts: Facts) -> Iterator[Hit]:
    """Each place that makes rows more before they are split or cross-validated."""
    for one in rows(facts):
        for split in one.splits:
            judged = bool(one.tested(split))
            for base in split.bases:
                if judged or not _held_out_before(base, split, one):
                    yield from _copied(base, split.order, split.site, judged)
        yield from _crossed(one)


def _held_out_before(base: Value, split: Split, one: Rows) -> bool:
    """It is the training part of an earlier split, whose test part has no copies in it."""
    return any(0 in earlier.sides(base) for earlier in one.splits if earlier.order < split.order)


def _crossed(one: Rows) -> Iterator[Hit]:
    for event in one.events:
        given = event.argument(1, "X") if event.name in CROSS else None
        if given is not None:
            yield from _copied(given, event.order, event.site, True)


def _copied(base: Value, before: int, split: Site, judged: bool) -> Iterator[Hit]:
    for value in slice_back(base):
        how = _copies(value)
        if how is None or value.event is None or value.event.order > before:
            continue
        yield Hit(
            value.event.site,
            f"{how} here, before the rows are split in {line_of(split)}: copies of one row land on both sides.",
            f"Split first ({line_of(split)}), then do this to the training part only.",
            Confidence.DEFINITE if judged else Confidence.PROBABLE,
            evidence={"split": split},
        )


def _copies(value: Value) -> str | None:
    """What is done to the rows by a call that copies them; None for any other value."""
    if value.name in (".fit_resample", ".fit_sample") and value.sources:
        for one in alternatives(value.sources[0]):
            if one.kind == INSTANCE and one.name.startswith(_COPIES):
                return f"{one.name.rpartition('.')[2]} adds rows"
        return None
    event = value.event
    if event is None:
        return None
    replace = event.keywords.get("replace")
    if value.name == "sklearn.utils.resample":
        # Its default is with replacement.
        taken = "stratify" not in event.keywords and (replace is None or _true(replace))
        return "resample draws rows with replacement" if taken else None
    if value.name == ".sample" and replace is not None and _true(replace):
        return "sample draws rows with replacement"
    return None


def _true(value: Value) -> bool:
    return value.kind == CONSTANT and value.constant is True
