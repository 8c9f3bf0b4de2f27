"""What is remembered of an array so that its rows can be recognised in another one.

Of every column the patterns at a few rows (the anchors), and of up to three columns that nearly identify a row all
patterns (the keys). The anchors are at positions that only the number of rows decides, so two arrays whose rows stand in
the same order agree at them; the keys find rows that were selected or put in another order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from osler.data.preprocess.arrays import Columns, Patterns, scrambled

ANCHORS = 64
KEYS = 3
ROW = -1  # the number of the key that is made of whole rows
_MAX_LEVEL = 6
_MIN_ROWS = 8  # fewer rows agree by chance too easily


@dataclass(slots=True)
class Key:
    """One column that nearly identifies a row.

    Attributes:
        column: its number in the array, ROW for whole rows.
        rows: the rows whose patterns are kept, None for all of them.
        values: their patterns.
    """

    column: int
    rows: NDArray[np.intp] | None
    values: Patterns
    _sorted: tuple[Patterns, NDArray[np.intp]] | None = None

    def table(self) -> tuple[Patterns, NDArray[np.intp]]:
        """The patterns that stand in one row only, ascending, and these rows."""
        if self._sorted is None:
            order = np.argsort(self.values)
            ascending = self.values[order]
            new = np.ones(len(ascending) + 1, bool)
            new[1:-1] = ascending[1:] != ascending[:-1]
            single = new[1:] & new[:-1] & (ascending != 0)
            rows = order[single]
            self._sorted = ascending[single], rows if self.rows is None else self.rows[rows]
        return self._sorted

    def find(self, values: Patterns) -> NDArray[np.intp]:
        """For each pattern the row that has it, -1 where none or several have."""
        ascending, rows = self.table()
        if not len(ascending):
            return np.full(len(values), -1, np.intp)
        at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
        return np.where(ascending[at] == values, rows[at], -1)


@dataclass(slots=True)
class Print:
    """What is remembered of one array.

    Attributes:
        n: rows.
        width: columns.
        numbers: the columns that were looked at.
        anchors: the rows whose patterns are kept, ascending.
        patterns: shape (columns looked at, anchors).
        keys: empty until `add_keys`.
    """

    n: int
    width: int
    numbers: NDArray[np.intp]
    anchors: NDArray[np.intp]
    patterns: Patterns
    keys: list[Key] = field(default_factory=list)
    _words: dict[bytes, int] | None = None
    _telling: NDArray[np.bool_] | None = None

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Which of the columns tell rows apart."""
        if self._telling is None:
            self._telling = _telling(self.patterns, self.anchors)
        return self._telling

    @property
    def words(self) -> dict[bytes, int]:
        """The anchors' patterns of each telling column, with its index."""
        if self._words is None:
            self._words = {self.patterns[c].tobytes(): int(c) for c in np.flatnonzero(self.telling)[::-1]}
        return self._words

    @property
    def bytes(self) -> int:
        """Memory it takes, in bytes, once every key has been used."""
        return self.patterns.nbytes + sum(3 * key.values.nbytes for key in self.keys)

    def same_values(self, other: Print) -> bool:
        """Whether the two agree at every anchor of every column."""
        return self.n == other.n and self.width == other.width and np.array_equal(self.patterns, other.patterns)


def level(n: int, limit: int) -> int:
    """Of an array of `n` rows those are kept whose scrambled pattern ends in that many zero bits."""
    return max(0, int(np.ceil(np.log2(max(n, 1) / limit))))


def chosen(values: Patterns, at_level: int) -> NDArray[np.intp]:
    """The rows that stay at that level."""
    mask = np.uint64((1 << at_level) - 1)
    return np.flatnonzero((scrambled(values) & mask) == 0)


def take(view: Columns, limit: int) -> Print:
    """The print of an array, without keys.

    Args:
        view: the array.
        limit: rows kept of each key; where a key is thinned there are more anchors, so that some are among its rows.
    """
    count = min(view.n, ANCHORS << min(level(view.n, limit), _MAX_LEVEL))
    anchors = np.unique(np.linspace(0, max(view.n - 1, 0), count).astype(np.intp))[: view.n]
    patterns = view.sample(anchors)
    return Print(view.n, view.width, view.numbers, anchors, patterns)


def _telling(patterns: Patterns, anchors: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Columns in which at least half of the anchors differ and whose values do not merely count up."""
    count = len(anchors)
    if count < _MIN_ROWS:
        return np.zeros(len(patterns), bool)
    ascending = np.sort(patterns, axis=1)
    distinct = (ascending[:, 1:] != ascending[:, :-1]).sum(1) + (ascending[:, 0] != 0)
    numbers = patterns.view(np.float64)
    with np.errstate(all="ignore"):
        slope = (numbers[:, -1:] - numbers[:, :1]) / (anchors[-1] - anchors[0])
        line = numbers[:, :1] + slope * (anchors - anchors[0])
        # A row number, a grid or a clock that ticks evenly is the same in tables that have no row in common.
        counts_up = np.all(np.abs(numbers - line) <= 1e-9 * np.abs(numbers).max(1, initial=0, keepdims=True), axis=1)
    return np.asarray((2 * distinct >= count) & ~counts_up)


def add_keys(into: Print, view: Columns, limit: int) -> None:
    """Keep the columns that identify rows best, or whole rows where no single column does.

    Args:
        into: the print of that array.
        view: the array.
        limit: rows kept of each key (`preprocess.link_rows`).
    """
    if into.n < _MIN_ROWS:
        return
    at_level = level(into.n, limit)
    order = np.argsort(-_worth(into), kind="stable")
    best = [int(c) for c in order if into.telling[c]][:KEYS]
    for c in best:
        into.keys.append(_key(int(into.numbers[c]), view.column(c), at_level))
    if not best and view.width > 1:
        into.keys.append(_key(ROW, view.mixed(), at_level))


def _worth(of: Print) -> NDArray[np.float64]:
    """More for more distinct anchors; a little for fractions, of which two seldom agree by chance."""
    ascending = np.sort(of.patterns, axis=1)
    distinct = (ascending[:, 1:] != ascending[:, :-1]).sum(1)
    fine = ((of.patterns & np.uint64(0xFFFFF)) != 0).mean(1)
    return np.asarray(distinct + fine)


def _key(column: int, values: Patterns, at_level: int) -> Key:
    if not at_level:
        return Key(column, None, values)
    rows = chosen(values, at_level)
    return Key(column, rows, values[rows])
