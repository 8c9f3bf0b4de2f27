"""Long series made small enough to draw, without losing what one looks for in them: extremes and non-finite points."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

POINTS = 2000
COLUMNS = 240
ROWS = 300

# Codes of a packed heat map, an unsigned 16-bit number a cell. Finite values lie between FIRST and LAST.
EMPTY, ZERO, FIRST, LAST, INFINITE, NAN = 0, 1, 2, 65533, 65534, 65535

Floats = NDArray[np.float64]


def points(steps: Sequence[int], values: Sequence[float], limit: int = POINTS) -> tuple[list[int], list[float]]:
    """A curve in at most `limit` points: the smallest, the largest and the first non-finite of each of equal buckets.

    The first and the last point stay. Values keep six significant digits.
    """
    ys = floats(values)
    n = min(len(steps), len(ys))
    ys = ys[:n]
    if n <= limit:
        keep = list(range(n))
    else:
        kept = {0, n - 1}
        finite = np.isfinite(ys)
        edges = np.linspace(0, n, max((limit - 2) // 3, 1) + 1).astype(int)
        for a, b in pairwise(edges):
            good = finite[a:b]
            if good.any():
                kept.add(int(a + np.argmin(np.where(good, ys[a:b], np.inf))))
                kept.add(int(a + np.argmax(np.where(good, ys[a:b], -np.inf))))
            if not good.all():
                kept.add(int(a + np.argmin(good)))
        keep = sorted(kept)
    return [int(steps[i]) for i in keep], [float(f"{ys[i]:.6g}") for i in keep]


@dataclass(frozen=True, slots=True)
class Pooled:
    """A heat map in few cells.

    Attributes:
        first, last: the steps that each column stands for, both included.
        rows: names; where rows were pooled, the first and the last of each group.
        values: float64 [rows, columns]; the largest value of each cell. NaN where the cell holds a NaN, else infinite
            where it holds an infinity.
        empty: bool [rows, columns]; no value was recorded.
    """

    first: list[int]
    last: list[int]
    rows: list[str]
    values: Floats
    empty: NDArray[np.bool_]


def pool(
    steps: Sequence[int],
    rows: Sequence[str],
    values: Sequence[Sequence[float | None]],
    columns: int = COLUMNS,
    max_rows: int = ROWS,
) -> Pooled:
    """A heat map in at most `columns` by `max_rows` cells, by taking the maximum; a non-finite value beats any other.

    Args:
        steps: one a column of the original.
        rows: names of the rows.
        values: `values[i][j]` belongs to `steps[i]` and `rows[j]`; None, or a row too short, is an empty cell.
        columns: most columns.
        max_rows: most rows.
    """
    n, m = min(len(steps), len(values)), len(rows)
    across = _edges(n, columns)
    down = _edges(m, max_rows)
    grid = np.full((len(down) - 1, len(across) - 1), np.nan)
    empty = np.ones(grid.shape, dtype=bool)
    for j, (a, b) in enumerate(pairwise(across)):
        block, missing = _block(values[a:b], m)
        # Over the steps of the column first, then over the rows of each group.
        column, nothing = _largest(block, missing)
        for i, (c, d) in enumerate(pairwise(down)):
            top, none = _largest(column[c:d, None], nothing[c:d, None])
            grid[i, j], empty[i, j] = top[0], none[0]
    names = [str(rows[c]) if d - c == 1 else f"{rows[c]} ... {rows[d - 1]}" for c, d in pairwise(down)]
    return Pooled(
        [int(steps[a]) for a in across[:-1]],
        [int(steps[b - 1]) for b in across[1:]],
        names,
        grid,
        empty,
    )


def pack(pooled: Pooled) -> dict[str, object]:
    """The cells as base64 of little-endian uint16, row by row, with what is needed to read them.

    Finite values are spaced evenly between `low` and `high`: in log10 where none is negative (`log` is true; 0 has a
    code of its own), else as they are. The rounding is at most 1/131,000 of that range.
    """
    values, empty = pooled.values, pooled.empty
    finite = np.isfinite(values) & ~empty
    log = not bool((values[finite] < 0).any())
    graded = finite & (values > 0) if log else finite
    levels = np.log10(values, where=graded, out=np.zeros_like(values)) if log else np.where(graded, values, 0.0)
    low, high = (float(levels[graded].min()), float(levels[graded].max())) if graded.any() else (0.0, 0.0)
    span = high - low
    codes = np.full(values.shape, EMPTY, dtype="<u2")
    codes[finite & ~graded] = ZERO
    scaled = (levels - low) / span if span > 0 else np.zeros_like(levels)
    codes[graded] = (FIRST + np.rint(scaled * (LAST - FIRST)))[graded].astype("<u2")
    codes[np.isinf(values) & ~empty] = INFINITE
    codes[np.isnan(values) & ~empty] = NAN
    return {"low": low, "high": high, "log": log, "data": base64.b64encode(codes.tobytes()).decode("ascii")}


def floats(values: Any) -> Floats:
    """Any sequence of numbers, None or the words of strict JSON as float64; None becomes NaN."""
    return np.asarray(values, dtype=np.float64)


def _edges(n: int, most: int) -> list[int]:
    return [int(e) for e in np.linspace(0, n, min(n, most) + 1)] if n else [0]


def _block(values: Sequence[Sequence[float | None]], m: int) -> tuple[Floats, NDArray[np.bool_]]:
    """`values` as float64 [steps, m], and where there was none."""
    if isinstance(values, np.ndarray):
        return floats(values), np.zeros(values.shape, dtype=bool)
    if all(len(row) == m and None not in row for row in values):
        block = floats(values)
        return block, np.zeros(block.shape, dtype=bool)
    padded = [[*row[:m], *[None] * (m - len(row))] for row in values]
    return floats(padded), np.array([[v is None for v in row] for row in padded])


def _largest(block: Floats, missing: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """The largest along the first axis: NaN over infinity over finite over nothing."""
    infinite = np.isinf(block)
    top: Floats = np.where(missing | np.isnan(block) | infinite, -np.inf, block).max(axis=0)
    top = np.where(infinite.any(axis=0), np.inf, top)
    top = np.where((np.isnan(block) & ~missing).any(axis=0), np.nan, top)
    return top, np.all(missing, axis=0)
