"""Which rows of one array are which rows of another that was seen before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osler.data.preprocess.arrays import Columns, Patterns
from osler.data.preprocess.prints import ROW, Key, Print, chosen, level

_HITS = 3  # anchors of the new array that a key must find
_PROBES = 12  # anchors by which a key is looked for in a column of another number
_FINE = 0.99  # share of a lone column's patterns that must be single


@dataclass(slots=True)
class Link:
    """How a new array follows from a known one.

    Attributes:
        rows: for each row of the new array the known row, -1 where it is none of them or was not looked up; None when
            the rows stand in the same order.
        columns: which columns of the new array's print stand in the known array as well.
    """

    rows: NDArray[np.intp] | None
    columns: frozenset[int]


def same_order(new: Print, known: Print) -> Link | None:
    """The link between arrays of as many rows whose common columns agree row by row."""
    if new.n != known.n:
        return None
    common = [c for word, c in new.words.items() if word in known.words]
    smaller = min(len(new.words), len(known.words))
    # Coordinates or a calendar may agree in tables of other rows: they must be the better part of what there is.
    if not common or (len(common) == 1 and smaller > 1) or 2 * len(common) < smaller:
        return None
    return Link(None, frozenset(common))


def other_order(new: Print, view: Columns, known: Print, limit: int) -> Link | None:
    """The link between a selection of rows and the array that they were selected from.

    Args:
        new, view: the print of the new array, and the array.
        known: the print of the known one, with its keys.
        limit: rows kept of each key (`preprocess.link_rows`).
    """
    at_level = max(level(new.n, limit), level(known.n, limit))
    pairs = _pairs(new, view, known, at_level)
    if not pairs:
        return None
    (column, key), *others = pairs
    looked_up = _looked_up(new, view, column, at_level)
    found = key.find(looked_up.values)
    second = next(((c, k) for c, k in others if c != column and k is not key), None)
    if second is not None:
        found = _confirmed(found, key, *second, view, looked_up)
    elif not _single(key):
        return None
    rows = np.full(new.n, -1, np.intp)
    rows[looked_up.rows] = found
    if not (rows >= 0).any():
        return None
    if key.column == ROW:
        return Link(rows, frozenset())
    common = _common(rows, new, view, known)
    if second is None and len(common or ()) < 2 and not _lone(new, known, looked_up):
        return None
    if common is not None and 2 * len(common) < min(int(new.telling.sum()), int(known.telling.sum())):
        return None  # places or days that tables of other rows share
    sure = {column} if second is None else {column, second[0]}
    return Link(rows, frozenset(sure if common is None else common | sure))


@dataclass(slots=True)
class _Values:
    rows: NDArray[np.intp]
    values: Patterns


def _looked_up(new: Print, view: Columns, column: int, at_level: int) -> _Values:
    values = view.mixed() if column == ROW else view.column(column)
    if not at_level:
        return _Values(np.arange(new.n), values)
    rows = chosen(values, at_level)
    return _Values(rows, values[rows])


def _pairs(new: Print, view: Columns, known: Print, at_level: int) -> list[tuple[int, Key]]:
    """Columns of the new array with the key that knows their values, the surest first."""
    if known.keys and known.keys[0].column == ROW:
        if new.width != known.width or new.telling.any() or new.n < 8:
            return []
        return [(ROW, known.keys[0])]
    telling = np.flatnonzero(new.telling)
    if not len(telling):
        return []
    probes = new.patterns[telling]
    few = np.ascontiguousarray(probes if at_level else probes[:, :: max(1, probes.shape[1] // _PROBES)])
    needed = _HITS if not at_level else 1  # of a thinned key only a share can be found
    out: list[tuple[int, int, Key]] = []
    for key in known.keys:
        same = np.flatnonzero(new.numbers[telling] == key.column)
        if len(same):
            hits = int((key.find(probes[same[0]]) >= 0).sum())
            if hits >= needed:
                out.append((hits, int(telling[same[0]]), key))
                continue
        # In another column it is looked for with less effort: only where columns were selected as well.
        spread = (key.find(few.ravel()) >= 0).reshape(few.shape).sum(1)
        out += [(int(h), int(telling[i]), key) for i, h in enumerate(spread) if h >= needed]
    out.sort(key=lambda entry: -entry[0])
    return [(c, key) for _, c, key in out]


def _confirmed(
    found: NDArray[np.intp], key: Key, column: int, other: Key, view: Columns, looked_up: _Values
) -> NDArray[np.intp]:
    """Only the rows in which a second column agrees as well; a thinned key confirms what it holds."""
    values = view.column(column)[looked_up.rows]
    if other.rows is None and key.rows is None:
        agree = (found >= 0) & (other.values[found] == values)
        return np.where(agree, found, -1)
    again = other.find(values)
    both = (found >= 0) & (again >= 0)
    if not both.any() or (again[both] == found[both]).mean() < _FINE:
        return np.full(len(found), -1, np.intp)
    return found


def _lone(new: Print, known: Print, looked_up: _Values) -> bool:
    """Whether a column that is the only one of its kind is proof: its values have too many digits to agree by chance."""
    if min(int(new.telling.sum()), len(known.keys)) > 1:
        return False
    return bool(((looked_up.values & np.uint64(0xFFFFF)) != 0).mean() > 0.5)


def _single(key: Key) -> bool:
    """Whether nearly every pattern stands in one row only."""
    return len(key.table()[0]) >= _FINE * len(key.values)


def _common(rows: NDArray[np.intp], new: Print, view: Columns, known: Print) -> set[int] | None:
    """Columns of the new array that agree with some column of the known one at the known one's anchors.

    None where fewer than two of these are among the rows.
    """
    at = np.searchsorted(known.anchors, rows)
    at[at == len(known.anchors)] = 0
    here = np.flatnonzero((rows >= 0) & (known.anchors[at] == rows))[:64]
    if len(here) < 2:
        return None
    words = {known.patterns[c, at[here]].tobytes() for c in np.flatnonzero(known.telling)}
    sample = view.sample(here)
    return {int(c) for c in np.flatnonzero(new.telling) if np.ascontiguousarray(sample[c]).tobytes() in words}
