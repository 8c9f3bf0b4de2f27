"""What a grid says about its column: quantiles, mean, spread, shares.

Quantiles and moments of second order are interpolated within a bin between its smallest and largest value; with edges
at quantiles that is off by less than one bin's share. Counts, mean and extremes are exact but for rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.drift.grid import Grid

Floats = NDArray[np.float64]

NORMAL_IQR = 1.3489795003921634
"""Interquartile range of the standard normal, which makes the spread of a normal column its standard deviation."""


def quantiles(grid: Grid, shares: Floats) -> Floats:
    """The values below which these shares of the finite values lie; NaN where there is none."""
    if grid.n == 0:
        return np.full(np.shape(shares), np.nan)
    counts = grid.counts
    held = np.flatnonzero(counts)
    counts, lows, highs = counts[held], grid.lows[held], grid.highs[held]
    ends = np.cumsum(counts)
    rank = np.clip(np.asarray(shares), 0, 1) * ends[-1]
    bins = np.minimum(np.searchsorted(ends, rank, side="left"), held.size - 1)
    part = np.clip((rank - (ends - counts)[bins]) / counts[bins], 0, 1)
    result: Floats = lows[bins] * (1 - part) + highs[bins] * part
    return result


def mean(grid: Grid) -> float:
    """The mean of the finite values; NaN where there is none, Inf where the sum overflowed."""
    n = grid.n
    if n == 0:
        return float("nan")
    share, gaps = grid.counts / n, grid.gaps / n
    inner = share[:-1] * grid.edges - gaps[:-1]
    return float(inner.sum() + (share[-1] * grid.edges[-1] + gaps[-1]))


def deviation(grid: Grid) -> float:
    """The standard deviation of the finite values; NaN where there is none."""
    n = grid.n
    if n == 0:
        return float("nan")
    held = grid.counts > 0
    share = grid.counts[held] / n
    lows, highs = grid.lows[held], grid.highs[held]
    middle = lows / 2 + highs / 2
    with np.errstate(over="ignore", invalid="ignore"):
        centre = float((share * middle).sum())
        inside = (highs - lows) ** 2 / 12
        return float(np.sqrt((share * ((middle - centre) ** 2 + inside)).sum()))


def spread(grid: Grid) -> float:
    """The robust unit of the column: its interquartile range over 1.349, its standard deviation where that is 0.

    0 for a constant column, NaN for an empty one.
    """
    low, high = quantiles(grid, np.array([0.25, 0.75]))
    robust = float(high - low) / NORMAL_IQR
    return robust if robust > 0 or grid.n == 0 else deviation(grid)


def share_outside(grid: Grid, low: float, high: float) -> tuple[float, float]:
    """Shares of the finite values below `low` and above `high`, interpolated within a bin."""
    return below(grid, low), 1 - below(grid, high) if grid.n else float("nan")


def below(grid: Grid, value: float) -> float:
    """The share of the finite values at or below a value, interpolated within its bin; NaN where there is none."""
    n = grid.n
    if n == 0:
        return float("nan")
    k = int(np.searchsorted(grid.edges, value, side="left"))
    counts = grid.counts
    before = int(counts[:k].sum())
    if counts[k] == 0:
        return before / n
    low, high = float(grid.lows[k]), float(grid.highs[k])
    part = 1.0 if value >= high else 0.0 if value < low else (value - low) / (high - low)
    return float(before + part * counts[k]) / n


def histogram(grid: Grid, edges: Floats) -> Floats:
    """Shares of the finite values between neighbouring edges; the outer bins take what lies beyond."""
    at = np.array([below(grid, float(edge)) for edge in edges[1:-1]])
    result: Floats = np.diff(np.concatenate(([0.0], at, [1.0])))
    return np.maximum(result, 0.0)


def psi(reference: NDArray[np.int64], current: NDArray[np.int64]) -> float:
    """The population stability index of counts over the same cells, Σ (q - p) ln(q / p).

    Half a row is added to each cell, which keeps empty ones finite.
    """
    p = (reference + 0.5) / (reference.sum() + 0.5 * reference.size)
    q = (current + 0.5) / (current.sum() + 0.5 * current.size)
    return float(((q - p) * np.log(q / p)).sum())


def jensen_shannon(reference: NDArray[np.int64], current: NDArray[np.int64]) -> float:
    """The Jensen–Shannon distance (square root of the divergence, base 2) of counts over the same cells, in [0, 1]."""
    p, q = reference / reference.sum(), current / current.sum()
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(p > 0, p * np.log2(p / m), 0.0) + np.where(q > 0, q * np.log2(q / m), 0.0)
    return float(np.sqrt(max(0.0, 0.5 * parts.sum())))


def deciles(reference: Grid, current: Grid, cells: int = 10) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of both over about `cells` groups of bins that hold equal shares of the reference."""
    ends = np.cumsum(reference.counts)
    cuts = np.unique(np.searchsorted(ends, np.arange(1, cells) / cells * ends[-1]))
    starts = np.concatenate(([0], cuts + 1))
    starts = starts[starts < ends.size]
    return np.add.reduceat(reference.counts, starts), np.add.reduceat(current.counts, starts)
