"""Which features can be compared, and which rows: what is missing, constant or only a counter is set aside and said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.core.settings.shift import Shift
from osler.data.need import DataError
from osler.data.shift.rows import Reservoir, Rows

Floats = NDArray[np.float64]
_COUNTER_SPAN = 10  # an identifier counts on: its range is at most this many times its number of rows
_STRETCH = 100  # neighbours that are drawn together from a long reference
_SAME = 1e-6  # relative: values of a constant column that differ by less are float noise


@dataclass(slots=True)
class Plan:
    """What of the reference takes part.

    Attributes:
        names: features, in order.
        rows: a sample of the reference's whole rows in their order, float64, shape [n, d].
        seen: rows of the reference.
        sampled: rows that were drawn from it (all, where they are few enough).
        incomplete: how many of these lack a value (or hold NaN or ±Inf) in a feature that takes part.
        constants: features that never change in the reference, with their value; they have no place in the joint
            distribution and are watched by themselves.
        left_out: features that take no part, and why.
    """

    names: tuple[str, ...]
    rows: Floats
    seen: int
    sampled: int
    incomplete: int
    constants: dict[str, float]
    left_out: list[tuple[str, str]] = field(default_factory=list)


def plan(reference: Rows, current: Rows, settings: Shift, seed: int = 0, progress: Progress = quiet) -> Plan:
    """Read the reference once and decide what takes part.

    Raises:
        DataError: the sides have no features in common, or arrays of different width.
    """
    names, left_out = _common(reference, current)
    sample = Reservoir(settings.max_reference, len(names), seed, length=_STRETCH)
    bad = np.zeros(len(names), dtype=np.int64)
    for batch in reference.batches(names):
        bad += np.count_nonzero(~np.isfinite(batch), axis=0)
        sample.add(batch)
        progress(f"reading {reference.name}", sample.seen, reference.count)
    integer = {name: bool(flag) for name, flag in zip(reference.names, reference.integer)}
    kept: list[int] = []
    constants: dict[str, float] = {}
    for j, name in enumerate(names):
        column = sample.rows[:, j]
        finite = column[np.isfinite(column)]
        if bad[j] > settings.max_missing * max(sample.seen, 1) or finite.size == 0:
            left_out.append((name, f"{bad[j]} of {sample.seen} values in {reference.name} are missing or not finite"))
        elif np.ptp(finite) <= _SAME * float(np.abs(finite).max()):
            constants[name] = float(finite[0])
        elif name not in reference.named and _counter(column, integer[name], reference.is_matrix, sample.seen):
            why = "every value occurs once and they run on like a counter: taken for an identifier or a time; name it to have it judged"
            left_out.append((name, why))
        else:
            kept.append(j)
    rows = sample.rows[:, kept]
    whole = np.isfinite(rows).all(axis=1)
    incomplete = len(rows) - int(whole.sum())
    return Plan(tuple(names[j] for j in kept), rows[whole], sample.seen, len(rows), incomplete, constants, left_out)


def _common(reference: Rows, current: Rows) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    if reference.is_matrix and current.is_matrix and len(reference.names) != len(current.names):
        raise DataError(
            f"{reference.name} has {len(reference.names)} features and {current.name} has {len(current.names)}: "
            "they must be the same features in the same order"
        )
    left_out = list(reference.skipped)
    if reference.is_matrix != current.is_matrix:
        left_out = []
    names = tuple(name for name in reference.names if name in set(current.names))
    skipped = {name for name, _ in current.skipped}
    for name in reference.names:
        if name not in names:
            why = "is not numeric in" if name in skipped else "is missing in"
            left_out.append((name, f"{why} {current.name}"))
    for name in current.names:
        if name not in reference.names and name not in {n for n, _ in left_out}:
            left_out.append((name, f"is missing in {reference.name}"))
    if not names:
        raise DataError(f"{reference.name} and {current.name} have no numeric column in common")
    return names, left_out


def _counter(column: Floats, integer: bool, is_matrix: bool, seen: int) -> bool:
    """Whether a column counts on: strictly rising or falling, or whole numbers without a gap or a double.

    Of an array only integers are looked at: its features have no names, and an embedding has no counter.
    """
    values = column[np.isfinite(column)]
    if len(values) < 100 or (is_matrix and not integer):
        return False
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    whole = integer or np.array_equal(values, np.floor(values))
    return whole and len(np.unique(values)) == len(values) and float(np.ptp(values)) < _COUNTER_SPAN * seen


class Intake:
    """Whole rows of the current side, in order, with what had to be set aside.

    Attributes:
        names: features that take part; those that hold next to nothing at the start of the current rows are out.
        left_out: features that were put out, and why.
        seen, whole: rows read, and rows without a gap.
        gaps: rows that lack a feature, by feature, shape [d].
        changed: finite values of each constant that differ from the reference's value, and how many were finite.
    """

    def __init__(self, current: Rows, plan: Plan, settings: Shift, progress: Progress = quiet) -> None:
        self._current = current
        self._progress = progress
        self._constants = plan.constants
        self._all = (*plan.names, *plan.constants)
        self._batches = iter(current.batches(self._all))
        self._first = next(self._batches, np.empty((0, len(self._all))))
        gaps = np.count_nonzero(~np.isfinite(self._first[:, : len(plan.names)]), axis=0)
        full = gaps <= settings.max_missing * max(len(self._first), 1)
        self._kept = np.flatnonzero(full)
        self.names = tuple(plan.names[j] for j in self._kept)
        self.left_out = [
            (name, f"{gaps[j]} of the first {len(self._first)} values in {current.name} are missing or not finite")
            for j, name in enumerate(plan.names)
            if not full[j]
        ]
        self.seen = 0
        self.whole = 0
        self.gaps = np.zeros(len(self.names), dtype=np.int64)
        self.changed = {name: [0, 0] for name in plan.constants}

    def batches(self) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
        """Whole rows, shape [n, d], and their positions among all rows; once."""
        batch: Floats | None = self._first
        while batch is not None:
            rows = batch[:, self._kept]
            finite = np.isfinite(rows)
            self.gaps += np.count_nonzero(~finite, axis=0)
            for j, (name, value) in enumerate(self._constants.items(), start=len(self._all) - len(self._constants)):
                column = batch[:, j]
                column = column[np.isfinite(column)]
                self.changed[name][0] += int(np.count_nonzero(np.abs(column - value) > _SAME * max(abs(value), 1e-300)))
                self.changed[name][1] += len(column)
            whole = finite.all(axis=1)
            at = self.seen + np.flatnonzero(whole)
            self.seen += len(rows)
            self.whole += len(at)
            self._progress(f"reading {self._current.name}", self.seen, self._current.count)
            yield rows[whole], at
            batch = next(self._batches, None)


def change_p(changed: int, current: int, reference: int) -> float:
    """Probability that all `changed` odd values fall among the current rows if rows were dealt at random (Fisher)."""
    if changed == 0:
        return 1.0
    log = lgamma(current + 1) - lgamma(current - changed + 1) - lgamma(current + reference + 1)
    return float(np.exp(log + lgamma(current + reference - changed + 1)))


def regrouped(
    batches: Iterator[tuple[Floats, NDArray[np.int64]]], size: int
) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """The same rows in groups of exactly `size`; the last may be smaller."""
    rows: list[Floats] = []
    positions: list[NDArray[np.int64]] = []
    held = 0
    for more, at in batches:
        start = 0
        while start < len(more):
            take = min(size - held, len(more) - start)
            rows.append(more[start : start + take])
            positions.append(at[start : start + take])
            held += take
            start += take
            if held == size:
                yield np.concatenate(rows), np.concatenate(positions)
                rows, positions, held = [], [], 0
    if held:
        yield np.concatenate(rows), np.concatenate(positions)
