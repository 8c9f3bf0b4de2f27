"""Sorting values into the bins of a grid: numba where there is much to do, numpy otherwise, with identical results.

Which bin a value belongs to is found without a search in most cases: a *cell* is computed from the bits of the value's
distance to the middle of the edges (linear near the middle, logarithmic further out), and a table says which edges lie
in that cell. Only subtraction, absolute value and addition are used, each of which is monotone and rounds the same way
everywhere, so the cell is a monotone function of the value and the table can never be wrong, whatever the edges. One
edge at 1e300 costs nothing: cells further out are merely searched by bisection.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COUNT, GAP, LOW, HIGH = range(4)
NAN, NEGATIVE, POSITIVE = range(3)

_OCTAVES = 10
_MOST_CELLS = 32_768
_CROWDED = 3.0
_COMPILE_FROM = 65_536


class Index(NamedTuple):
    """The table that finds a bin.

    Attributes:
        middle: value from which distances are taken.
        scale: distance up to which cells are equally wide, > 0.
        base: bits of `scale`.
        shift: bits of a distance that are dropped.
        half: cells on each side of the middle.
        first: uint16 (int32 from 65,536 edges on), 2 * half + 1 entries; edges `first[c]` … `first[c + 1]` lie in cell c.
        padded: the edges, and +Inf after them.
    """

    middle: float
    scale: float
    base: int
    shift: int
    half: int
    first: NDArray[np.integer[Any]]
    padded: Floats


def index_of(edges: Floats) -> Index:
    """The table for these edges (float64, strictly ascending, finite, at least one).

    Two are weighed: cells around the middle edge, which suit most columns, and, where these leave many edges in one
    cell, cells that widen from the lower end, which suit amounts that span many orders of magnitude.
    """
    size = edges.size
    quarter = 0.125 * float(edges[(3 * size) // 4]) - 0.125 * float(edges[size // 4])
    index = _index(edges, float(edges[size // 2]), quarter, _OCTAVES)
    if _crowding(index) > _CROWDED:
        lower = 0.5 * float(edges[size // 16]) - 0.5 * float(edges[0])
        other = _index(edges, float(edges[0]), lower, 8 * _OCTAVES)
        if _crowding(other) < _crowding(index):
            return other
    return index


def _index(edges: Floats, middle: float, scale: float, most_octaves: int) -> Index:
    scale = min(max(scale, math.ulp(middle), 5e-324), 1e300)
    with np.errstate(over="ignore"):
        reach = min(max(float(edges[-1]) - middle, middle - float(edges[0]), scale), 1e300)
    octaves = min(most_octaves, 2 + max(0, int(math.log2(reach) - math.log2(scale))))
    depth = max(1, math.ceil(math.log2(edges.size + 1)) - 1)
    depth = min(depth, max(1, int(math.log2(_MOST_CELLS / octaves))))
    padded = np.append(edges, np.inf)
    index = Index(middle, scale, _bits(scale), 52 - depth, octaves << depth, np.zeros(0, np.uint16), padded)
    cells = _cells(edges, index)
    first = np.searchsorted(cells, np.arange(2 * index.half + 1), side="left")
    return index._replace(first=first.astype(np.uint16 if edges.size < 65_536 else np.int32))


def _crowding(index: Index) -> float:
    """Edges that share a value's cell, on average over the edges."""
    held = np.diff(index.first).astype(np.float64)
    return float((held * held).sum() / held.sum())


def accumulate(values: Floats, edges: Floats, index: Index, state: Floats, special: Ints) -> None:
    """Count `values` into `state` and `special`, in place.

    Args:
        values: float64, one-dimensional, contiguous.
        edges: float64, strictly ascending and finite.
        index: `index_of(edges)`.
        state: float64, one row per bin of (count, sum of distances to the anchor, smallest, largest).
        special: int64, counts of NaN, -Inf and +Inf.
    """
    if values.size >= _COMPILE_FROM or "numba" in sys.modules:
        compiled = _compiled()
        if compiled is not None:
            compiled(
                values,
                index.padded,
                index.middle,
                index.scale,
                index.base,
                index.shift,
                index.half,
                index.first,
                state,
                special,
            )
            return
    accumulate_plain(values, edges, state, special)


def accumulate_plain(values: Floats, edges: Floats, state: Floats, special: Ints) -> None:
    """`accumulate` with numpy alone."""
    finite = np.isfinite(values)
    if not finite.all():
        special[NAN] += np.count_nonzero(np.isnan(values))
        special[NEGATIVE] += np.count_nonzero(values == -np.inf)
        special[POSITIVE] += np.count_nonzero(values == np.inf)
        values = values[finite]
    values = values + 0.0
    bins = np.searchsorted(edges, values, side="left")
    last = edges.size - 1
    with np.errstate(over="ignore"):
        gaps = np.abs(edges[np.minimum(bins, last)] - values)
        np.add.at(state[:, COUNT], bins, 1.0)
        np.add.at(state[:, GAP], bins, gaps)
    np.minimum.at(state[:, LOW], bins, values)
    np.maximum.at(state[:, HIGH], bins, values)


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def _cells(values: Floats, index: Index) -> Ints:
    with np.errstate(over="ignore"):
        distance = values - index.middle
        step = ((np.abs(distance) + index.scale).view(np.int64) - index.base) >> index.shift
    step = np.minimum(step, index.half - 1)
    cells: Ints = np.where(distance >= 0, index.half + step, index.half - 1 - step)
    return cells


@functools.cache
def _compiled() -> Callable[..., None] | None:
    """The numba kernel; None where numba is missing. Compiled once a machine where its cache can be written."""
    try:
        from numba import njit
    except ImportError:
        return None
    try:
        kernel: Callable[..., None] = njit(nogil=True, cache=True)(_loop)
    except RuntimeError:  # numba finds no folder for its cache
        kernel = njit(nogil=True)(_loop)
    return kernel


def _loop(
    values: Floats,
    padded: Floats,
    middle: float,
    scale: float,
    base: int,
    shift: int,
    half: int,
    first: NDArray[np.integer[Any]],
    state: Floats,
    special: Ints,
) -> None:
    last = padded.size - 2
    top = half - 1
    for i in range(values.size):
        v = values[i] + 0.0
        if v - v != 0.0:
            if v != v:
                special[0] += 1
            elif v < 0.0:
                special[1] += 1
            else:
                special[2] += 1
            continue
        distance = v - middle
        step = min((np.float64(abs(distance) + scale).view(np.int64) - base) >> shift, top)
        cell = half + step if distance >= 0.0 else top - step
        k = np.int64(first[cell])
        end = np.int64(first[cell + 1])
        while end - k > 1:
            centre = (k + end) >> 1
            if padded[centre] < v:
                k = centre + 1
            else:
                end = centre
        k += padded[k] < v  # without a branch: it would be guessed wrong every other time
        gap = padded[k] - v if k <= last else v - padded[last]
        state[k, 0] += 1.0
        state[k, 1] += gap
        state[k, 2] = min(state[k, 2], v)
        state[k, 3] = max(state[k, 3], v)
