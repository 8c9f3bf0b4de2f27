"""Rows that hang together in time: how long, and how to deal them at random without tearing them apart.

A null from single rows assumes that rows are independent. Frames of a film and readings of a sensor are not: a window
of 1,000 of them may hold no more than 50 independent ones, and would look shifted every time. So rows are dealt in
stretches that are long against the time over which they are alike (Künsch 1989, Annals of Statistics 17, on the block
bootstrap). Where rows are independent a stretch is one row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_SERIES = (
    16  # features (and squares of features) whose correlation time is worked out: those most alike from row to row
)
_WINDOW = 5.0  # Sokal's: correlations are summed up to this multiple of the time found
_INDEPENDENT = 1.5  # correlation times below this are the estimate's own noise
_LENGTH = 10.0  # correlation times in a stretch: stretches then keep nine tenths of the variance of a window's mean


def correlation_time(rows: Floats) -> float:
    """The largest integrated autocorrelation time among features and their squares, in rows; 1 for independent rows.

    1 + 2 Σ ρ(k), summed up to the first lag that is five times the sum (Sokal 1997, Monte Carlo methods in statistical
    mechanics, section 3).

    Args:
        rows: shape [n, d], in their order.
    """
    n = len(rows)
    if n < 20:
        return 1.0
    series = np.concatenate([rows, rows * rows], axis=1)
    series = series - series.mean(axis=0)
    spread = series.std(axis=0)
    series = series[:, spread > 0] / spread[spread > 0]
    if not series.shape[1]:
        return 1.0
    alike = np.einsum("ij,ij->j", series[1:], series[:-1]) / n
    series = series[:, np.argsort(-alike)[:_SERIES]]
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(series, size, axis=0)) ** 2
    correlation = np.fft.irfft(power, size, axis=0)[: n // 4] / n
    times = 2 * np.cumsum(correlation, axis=0) - 1
    enough = np.arange(len(times))[:, None] >= _WINDOW * times
    at = np.where(enough.any(axis=0), enough.argmax(axis=0), len(times) - 1)
    return float(max(times[at, np.arange(times.shape[1])].max(), 1.0))


def stretch(time: float) -> int:
    """Rows in a stretch for a correlation time; 1 where rows are independent."""
    return 1 if time < _INDEPENDENT else math.ceil(_LENGTH * time)


def deal(rng: np.random.Generator, rows: int, count: int, length: int) -> Index:
    """`count` of `rows` positions at random: one by one, or in stretches of `length` neighbours."""
    if length <= 1:
        return rng.choice(rows, count, replace=False)
    first = int(rng.integers(length))
    starts = np.arange(first - length, rows, length)
    at = (rng.permutation(starts)[:, None] + np.arange(length)).ravel()
    return at[(at >= 0) & (at < rows)][:count].astype(np.intp)
