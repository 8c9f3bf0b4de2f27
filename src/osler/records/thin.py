"""Curves and heat maps in bounded memory. Pure Python: also used inside the user's process."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

MAX_POINTS = 20_000  # of one curve: ten for each pixel of a wide screen
MAX_COLUMNS = 2_048  # of one heat map: one for each pixel of a wide screen

_T = TypeVar("_T")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Curve:
    """A curve that keeps every point, then every second, then every fourth … and always the last one."""

    def __init__(self, limit: int = MAX_POINTS) -> None:
        self._limit = limit
        self._stride = 1
        self._seen = 0
        self._steps = array("q")
        self._values = array("d")
        self._last: tuple[int, float] | None = None

    def add(self, step: int, value: float) -> None:
        """One more point."""
        if self._seen % self._stride == 0:
            self._steps.append(min(max(step, _SMALLEST), _LARGEST))
            self._values.append(value)
            self._last = None
            if len(self._steps) > self._limit:
                self._steps, self._values = self._steps[::2], self._values[::2]
                self._stride *= 2
                if self._seen % self._stride:
                    self._last = (step, value)
        else:
            self._last = (step, value)
        self._seen += 1

    def result(self) -> tuple[list[int], list[float]]:
        """Steps, ascending, and values."""
        steps, values = self._steps.tolist(), self._values.tolist()
        if self._last is not None:
            steps.append(self._last[0])
            values.append(self._last[1])
        return in_order(steps, values)


class HeatMap:
    """A heat map that, past its limit, joins neighbouring columns into one that holds the larger values.

    The largest, because a spike must stay visible; NaN counts as larger than any number. Rows that come up later are
    added at the end, NaN where they were not there yet.
    """

    def __init__(self, limit: int = MAX_COLUMNS) -> None:
        self._limit = limit
        self._stride = 1
        self._seen = 0
        self._names: tuple[str, ...] = ()
        self._order: list[int] = []  # for each of `_names` its row
        self._plain = True  # `_names` are all the rows, in their order
        self._rows: dict[str, int] = {}
        self._steps: list[int] = []
        self._columns: list[array[float]] = []

    def add(self, rows: Sequence[str], step: int, column: Sequence[float]) -> None:
        """One more column.

        Raises:
            ValueError: it has not one value for each row.
        """
        names = tuple(rows)
        if len(column) != len(names):
            raise ValueError(f"{len(column)} values for {len(names)} rows")
        if names != self._names:
            self._names = names
            self._order = [self._rows.setdefault(str(n), len(self._rows)) for n in names]
            self._plain = self._order == list(range(len(self._rows)))
        if self._plain:
            cells = array("f", column)
        else:
            cells = array("f", [float("nan")]) * len(self._rows)
            for row, value in zip(self._order, column, strict=True):
                cells[row] = value
        if self._seen % self._stride == 0:
            self._steps.append(step)
            self._columns.append(cells)
            if len(self._columns) > self._limit:
                pairs = range(0, len(self._columns) - 1, 2)
                joined = [_larger(self._columns[i], self._columns[i + 1]) for i in pairs]
                odd = self._columns[-1:] if len(self._columns) % 2 else []
                self._columns, self._steps = joined + odd, self._steps[::2]
                self._stride *= 2
        else:
            self._columns[-1] = _larger(self._columns[-1], cells)
        self._seen += 1

    def result(self) -> tuple[list[str], list[int], list[list[float]]]:
        """Rows, steps (the first of those that were joined), and a list of values for each step."""
        pad = [float("nan")]
        columns = [c.tolist() + pad * (len(self._rows) - len(c)) for c in self._columns]
        return list(self._rows), *in_order(self._steps, columns)


def _larger(a: array[float], b: array[float]) -> array[float]:
    """The larger of each pair; `b` is at least as long as `a`."""
    out = array("f", [x if x >= y or x != x else y for x, y in zip(a, b, strict=False)])
    out.extend(b[len(a) :])
    return out


def in_order(steps: list[int], values: list[_T]) -> tuple[list[int], list[_T]]:
    """Both, by ascending step; equal steps stay as they came."""
    if all(a <= b for a, b in pairwise(steps)):
        return steps, values
    order = sorted(range(len(steps)), key=steps.__getitem__)
    return [steps[i] for i in order], [values[i] for i in order]
