"""Edges of a grid from a reference: its quantiles, its outermost values, and both sides of values that repeat.

The brackets hold whatever the edges are; good edges only make them narrow. So the quantiles come from a sample, which
saves the full sort: drawn at a rate that halves whenever it has grown to twice what is wanted, so that a column is read
once, in batches, without its length being known. Three things are added, each where quantiles alone leave a bracket
wide:

- the outermost values themselves and quantiles at shares that halve towards both ends, for heavy tails and outliers:
  W is an area, and half of it may belong to a thousandth of the rows;
- the number just below a value that fills several quantiles (zeros, defaults), so that this value has a bin of its own;
- every distinct value where there are few of them: counts of integers and codes are then exact.

The draw is seeded: the same rows give the same edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.drift.grid import Edges

Floats = NDArray[np.float64]

COMPUTING = 4096
"""Edges where reference and current data are both at hand."""
STORED = 256
"""Edges of a profile that is kept: a few KB a column."""

_PER_EDGE = 32
_OUTERMOST = 32
_CHUNK = 262_144


class Sampler:
    """Gathers what edges are made of, batch by batch.

    Args:
        count: edges wanted, at least 8.
        rows: how many there will be, where that is known: then no more are drawn than are wanted.
        seed: of the draw.
    """

    __slots__ = ("_count", "_ends", "_parts", "_rate", "_rng", "_size", "_want")

    def __init__(self, count: int = COMPUTING, rows: int | None = None, seed: int = 0) -> None:
        if count < 8:
            raise ValueError(f"a grid needs at least 8 edges, not {count}")
        self._count = count
        self._want = _PER_EDGE * count
        self._rng = np.random.default_rng(seed)
        self._rate = min(1.0, 1.5 * self._want / rows) if rows else 1.0
        self._size = 0
        self._parts: list[Floats] = []
        self._ends: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))

    def add(self, values: Floats) -> None:
        """Take in a batch: float64, one-dimensional; what is not finite is passed over."""
        for start in range(0, values.size, _CHUNK):
            self._add(values[start : start + _CHUNK])

    def _add(self, values: Floats) -> None:
        self._ends = tuple(_outermost(values, ends, side) for side, ends in enumerate(self._ends))  # type: ignore[assignment]
        if self._rate < 1.0:
            drawn = self._rng.binomial(values.size, self._rate)
            values = values[self._rng.integers(0, values.size, drawn)]
        values = values[np.isfinite(values)]
        self._parts.append(values)
        self._size += values.size
        while self._size > 2 * self._want:
            whole = np.concatenate(self._parts)
            kept = whole[self._rng.random(whole.size) < 0.5]
            self._parts, self._size, self._rate = [kept], kept.size, self._rate / 2

    def edges(self) -> Edges:
        """The edges, at most about `count`; a single one at 0 where no finite value was seen."""
        sample = np.concatenate([*self._parts, *self._ends])
        if sample.size == 0:
            return Edges([0.0])
        sample.sort()
        sample += 0.0  # -0.0 and 0.0 are one edge
        distinct = sample[np.concatenate(([True], sample[1:] != sample[:-1]))]
        if distinct.size <= self._count // 2:
            return Edges(_with_sides(distinct, distinct))
        if distinct.size <= self._count:
            return Edges(distinct)
        return Edges(self._chosen(sample))

    def _chosen(self, sample: Floats) -> Floats:
        outer = min(_OUTERMOST, self._count // 16)
        halvings = int(np.log2(sample.size / self._count)) + 1
        steps = np.maximum(1, (sample.size / self._count * 0.5 ** np.arange(1, halvings + 1)).astype(np.int64))
        even = self._count - 2 * (outer + halvings)
        ranks = ((np.arange(even) + 0.5) / even * sample.size).astype(np.int64)
        picked = sample[ranks]
        repeated = np.unique(picked[1:][picked[1:] == picked[:-1]])
        low, high = self._ends
        more = (sample[steps], sample[-1 - steps], low[:outer], high[-outer:])
        return _with_sides(np.unique(np.concatenate((picked, *more)) + 0.0), repeated)


def make_edges(values: Floats, count: int = COMPUTING, seed: int = 0) -> Edges:
    """Edges for values that are all in memory (float64, one-dimensional); see the module."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    sampler = Sampler(count, array.size, seed)
    sampler.add(array)
    return sampler.edges()


def _with_sides(edges: Floats, repeated: Floats) -> Floats:
    """The edges with the number just below each repeated value."""
    with np.errstate(over="ignore"):
        below = np.nextafter(repeated, -np.inf)
    result: Floats = np.union1d(edges, below[np.isfinite(below)])
    return result


def _outermost(values: Floats, kept: Floats, side: int) -> Floats:
    """The `_OUTERMOST` smallest (side 0) or largest (side 1) finite values of both, ascending."""
    if kept.size == _OUTERMOST:
        values = values[values < kept[-1]] if side == 0 else values[values > kept[0]]
        if values.size == 0:
            return kept
    values = np.concatenate((kept, values[np.isfinite(values)]))
    if values.size > _OUTERMOST:
        values = np.partition(values, _OUTERMOST - 1 if side == 0 else values.size - _OUTERMOST)
        values = values[:_OUTERMOST] if side == 0 else values[-_OUTERMOST:]
    return np.sort(values)
