"""Kolmogorov–Smirnov and Wasserstein-1 from two grids over the same edges, as brackets that hold the exact value.

Let F and G be the empirical distribution functions of two samples of n and m values, f = F - G, and take one bin
(l, r]. Of each sample the grid gives its count c in the bin, its smallest and largest value a ≤ b there and the sum of
its distances to an edge. F(l) and F(r) are known exactly from the counts, so f is known at every edge.

**Kolmogorov–Smirnov**, sup |f|. Inside the bin F changes only at values of its sample: it is F(l) before a, F(r) from b
on, and in between it has made at least its first and not yet its last step, so it lies in [F(l) + 1/n, F(r) - 1/n].
The same holds for G. Hence at each of the points a_F, b_F, a_G, b_G, and up to the next of them, f lies in a known
interval. The largest |end| of all these intervals bounds sup |f| from above. Each interval holds a value that f takes,
so the largest distance from 0 to an interval bounds sup |f| from below. Infinities are values like others: -Inf is
counted in F before every bin, +Inf after the last.

**Wasserstein-1**, W = ∫ |f|, over finite values only (with an infinite value it would be infinite or undefined; the
share of infinities is judged by itself). Let A be the smaller of a_F, a_G and X the larger of b_F, b_G. f is constant
on (l, A) and on [X, r), which gives their parts exactly. Between A and X, with w = X - A,

    J = ∫ f = w f(l) + P_F - P_G,   P_F = Σ (X - x) / n over the values x of F in the bin,

because each value x adds 1/n to F from x to X. So |J| ≤ ∫ |f|, the lower bound. From above ∫ |f| is at most

- |J| where f does not change its sign, and else, f lying in [d, u] with d < 0 < u, the largest ∫ |f| that these
  limits and J allow: f = u on a part of w and d on the rest, which is (J (u + d) - 2 w u d) / (u - d);
- w |f(l)| + P_F + P_G, since |f| ≤ |f(l)| + (F - F(l)) + (G - G(l));
- w |f(r)| + Q_F + Q_G, with Q_F = Σ (x - A) / n = w c / n - P_F, by the same argument from the right;

and the smallest of the three is taken. The bins open to one side are closed by A and X themselves: f is 0 beyond.
Outliers cost little: a bin with one sample in it, or with one value of each, is exact, however wide.

**Rounding.** All bounds are widened by what floating point may have taken: with u = 2^-53, a sum of c non-negative
terms in any order is off by at most c u / (1 - c u) of itself (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., §4.2), F and G by a relative 3 u of whichever tail is smaller, each further step by u,
and each step that ends below the normal numbers by 2^-1074.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osler.data.drift.grid import Grid
from osler.data.need import DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_U = 2.0**-53
_SMALLEST = 5e-324
_HUGE = 1e306
_STEPS = 1024  # more than a value's distance goes through when grids are made coarser


class Bracket(NamedTuple):
    """A number known to lie in [low, high]."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """`high - low`."""
        return self.high - self.low

    def holds(self, value: float) -> bool:
        """Whether the value lies inside."""
        return self.low <= value <= self.high


class _Sample(NamedTuple):
    """One grid: counts int64[B+1] per bin and before each bin, smallest and largest value per bin, size."""

    counts: Ints
    before: Ints
    low: Floats
    high: Floats
    size: int


def ks(first: Grid, second: Grid) -> Bracket:
    """The Kolmogorov–Smirnov distance of two samples: the largest difference of their distribution functions.

    Infinities count as mass at the ends; nulls and NaN do not count.

    Raises:
        DataError: the edges differ, or a sample has no value.
    """
    _same_edges(first, second)
    left, right = _sample(first, True), _sample(second, True)
    return _ks(first, second, left, right, _intervals(left, right))


def wasserstein(first: Grid, second: Grid) -> Bracket:
    """The Wasserstein-1 (earth mover's) distance of the finite values of two samples, in the unit of the column.

    `high` is Inf where the values are so large that the distance may not fit a float64.

    Raises:
        DataError: the edges differ, or a sample has no finite value.
    """
    _same_edges(first, second)
    left, right = _sample(first, False), _sample(second, False)
    return _wasserstein(first, second, left, right, _intervals(left, right))


def distances(first: Grid, second: Grid) -> tuple[Bracket, Bracket]:
    """`ks` and `wasserstein` of two samples at once, which saves a part of the work where there are no infinities.

    Raises:
        DataError: the edges differ, or a sample has no finite value.
    """
    if any((first.neg_inf, first.pos_inf, second.neg_inf, second.pos_inf)):
        return ks(first, second), wasserstein(first, second)
    _same_edges(first, second)
    left, right = _sample(first, False), _sample(second, False)
    found = _intervals(left, right)
    return _ks(first, second, left, right, found), _wasserstein(first, second, left, right, found)


def _ks(first: Grid, second: Grid, left: _Sample, right: _Sample, found: _Intervals) -> Bracket:
    start = abs(first.neg_inf / left.size - second.neg_inf / right.size)
    slack = 8 * _U
    high = max(float(np.maximum(-found.lower, found.upper).max()), start) + slack
    low = max(float(np.maximum(found.lower, -found.upper).max()), start, 0.0) - slack
    return Bracket(max(low, 0.0), min(high, 1.0))


def _wasserstein(first: Grid, second: Grid, left: _Sample, right: _Sample, found: _Intervals) -> Bracket:
    extreme = max(abs(v) for grid in (first, second) for v in (grid.low, grid.high, *grid.edges[[0, -1]]))
    unit = 2.0**-6 if extreme > _HUGE else 1.0
    left, right = (s._replace(low=s.low * unit, high=s.high * unit) for s in (left, right))
    edges = first.edges * unit
    total = left.counts + right.counts
    inside = total > 0
    begin = np.where(inside, np.minimum(left.low, right.low), 0.0)
    end = np.where(inside, np.maximum(left.high, right.high), 0.0)
    lower_edge = np.concatenate((begin[:1] if inside[0] else edges[:1], edges))
    upper_edge = np.concatenate((edges, end[-1:] if inside[-1] else edges[-1:]))
    begin, end = np.where(inside, begin, lower_edge), np.where(inside, end, lower_edge)

    at_left, error_left = _difference(left.before, left.size, right.before, right.size)
    at_right, error_right = _difference(left.before + left.counts, left.size, right.before + right.counts, right.size)
    outside = (begin - lower_edge) * np.abs(at_left) + (upper_edge - end) * np.abs(at_right)
    doubt = (begin - lower_edge) * error_left + (upper_edge - end) * error_right

    width = end - begin
    one = _area(first.gaps * unit, left, upper_edge, edges[-1], end)
    two = _area(second.gaps * unit, right, upper_edge, edges[-1], end)
    spill = width * (error_left + 2 * _U * np.abs(at_left))
    j_low = width * at_left + one.low - two.high - spill
    j_high = width * at_left + one.high - two.low + spill
    j_low -= 4 * _U * np.abs(j_low)
    j_high += 4 * _U * np.abs(j_high)
    size = np.maximum(-j_low, j_high)
    points = found.points * unit
    moving = (points >= begin) & (points < end)
    lower = np.where(moving, found.lower, np.inf).min(axis=0) - 8 * _U
    upper = np.where(moving, found.upper, -np.inf).max(axis=0) + 8 * _U

    changes = (lower < 0) & (upper > 0)
    lower, upper = np.where(changes, lower, 0.0), np.where(changes, upper, 0.0)
    gap = np.where(changes, upper - lower, 1.0)
    turn = np.maximum(j_low * (upper + lower), j_high * (upper + lower)) / gap - 2 * width * upper * lower / gap
    turn += 32 * _U * (size + width * np.maximum(upper, -lower))
    from_left = width * (np.abs(at_left) + error_left) + one.high + two.high
    mass_one, mass_two = left.counts / left.size, right.counts / right.size
    rest = width * (mass_one + mass_two) - one.low - two.low
    from_right = width * (np.abs(at_right) + error_right) + rest + 8 * _U * (rest + one.low + two.low)
    most = np.minimum(np.where(changes, turn, size), np.minimum(from_left, from_right))
    least = np.maximum(0.0, np.maximum(j_low, -j_high))

    steps = (inside.size + 16) * _U
    low = float(((outside - doubt) + least).sum()) / unit
    high = float(((outside + doubt) + np.maximum(most, least)).sum()) / unit
    tiny = 64 * inside.size * _SMALLEST if unit == 1.0 else 1e-300
    return Bracket(min(max(0.0, low * (1 - steps) - tiny), sys.float_info.max), high * (1 + steps) + tiny)


def ks_apart(first: Grid, second: Grid, apart: float) -> float:
    """A lower bound of how much of the Kolmogorov–Smirnov distance rounding cannot explain.

    The supremum over x of F(x) - G(x + apart) and of G(x) - F(x + apart): the share of rows that no move of every value by
    `apart` brings into line. It is taken at the largest value of each bin, where F is known, against the most that G can
    have reached there. Never larger than the distance itself, and near it for distributions without repeated values.

    Args:
        first, second: over the same edges, at least one value each.
        apart: how far values may move, ≥ 0, in the unit of the column.
    """
    _same_edges(first, second)
    left, right = _sample(first, True), _sample(second, True)
    start = abs(first.neg_inf / left.size - second.neg_inf / right.size)
    return max(start, *(_ahead(a, b, first.edges, apart) for a, b in ((left, right), (right, left)))) - 8 * _U


def _ahead(one: _Sample, two: _Sample, edges: Floats, apart: float) -> float:
    held = one.counts > 0
    if not held.any():
        return 0.0
    points = one.high[held] + apart
    bins = np.searchsorted(edges, points, side="left")
    reached = two.before[bins] + np.where(two.low[bins] <= points, two.counts[bins], 0)
    mine = (one.before + one.counts)[held]
    return float((mine / one.size - reached / two.size).max())


def _same_edges(first: Grid, second: Grid) -> None:
    if not first.edge_set.same(second.edge_set):
        raise DataError("grids can only be compared over the same edges")


def _sample(grid: Grid, infinities: bool) -> _Sample:
    counts = grid.counts
    start = grid.neg_inf if infinities else 0
    size = int(counts.sum()) + (grid.neg_inf + grid.pos_inf if infinities else 0)
    if size == 0:
        raise DataError("a sample without a value cannot be compared")
    before = np.concatenate(([0], np.cumsum(counts[:-1]))) + start
    return _Sample(counts, before, grid.lows, grid.highs, size)


def _difference(one: Ints, size_one: int, two: Ints, size_two: int) -> tuple[Floats, Floats]:
    """F - G where `one` and `two` values lie at or below, and how far rounding may have moved it."""
    below = one / size_one + two / size_two
    above = (size_one - one) / size_one + (size_two - two) / size_two
    from_below = one / size_one - two / size_two
    from_above = (size_two - two) / size_two - (size_one - one) / size_one
    value = np.where(below <= above, from_below, from_above)
    return value, 3 * _U * np.minimum(below, above)


class _Intervals(NamedTuple):
    """Where F - G lies from each of a_F, b_F, a_G, b_G on: the points, the lower and the upper ends, float64[4, B+1]."""

    points: Floats
    lower: Floats
    upper: Floats


def _intervals(left: _Sample, right: _Sample) -> _Intervals:
    points = np.stack((left.low, left.high, right.low, right.high))
    least_one, most_one = _reached(points, left, 0)
    least_two, most_two = _reached(points, right, 2)
    return _Intervals(
        points,
        least_one / left.size - most_two / right.size,
        most_one / left.size - least_two / right.size,
    )


def _reached(points: Floats, sample: _Sample, own: int) -> tuple[Floats, Floats]:
    """The fewest and the most values of the sample at or below each point; rows `own` and `own + 1` are its a and b."""
    counts, before = sample.counts.astype(np.float64), sample.before.astype(np.float64)
    least = np.empty_like(points)
    most = np.empty_like(points)
    single = sample.low >= sample.high
    least[own] = before + np.where(single, counts, 1.0)
    most[own] = before + np.where(single, counts, counts - 1.0)
    least[own + 1] = most[own + 1] = before + counts
    others = slice(2 - own, 4 - own)
    whole = np.where(points[others] >= sample.high, counts, 0.0)
    part = (points[others] >= sample.low) & (points[others] < sample.high)
    least[others] = before + np.where(part, 1.0, whole)
    most[others] = before + np.where(part, counts - 1.0, whole)
    return least, most


class _Area(NamedTuple):
    """∫ of a sample's own steps from the bin's first value to `end`, as lower and upper bound."""

    low: Floats
    high: Floats


def _area(gaps: Floats, sample: _Sample, upper_edge: Floats, last_edge: float, end: Floats) -> _Area:
    share, held = sample.counts / sample.size, sample.counts > 0
    smallest, largest = np.where(held, sample.low, end), np.where(held, sample.high, end)
    others = np.maximum(sample.counts - 1, 0) / sample.size
    once = np.where(held, 1 / sample.size, 0.0)
    fewest = once * (end - smallest) + others * (end - largest)
    most = once * (end - largest) + others * (end - smallest)
    fewest, most = fewest * (1 - 8 * _U), most * (1 + 8 * _U)

    mean = gaps / sample.size
    reach = share * (upper_edge - end)
    value = mean - reach
    reach[-1] = share[-1] * (end[-1] - last_edge)
    with np.errstate(invalid="ignore"):
        value[-1] = reach[-1] - mean[-1]
        summed = (sample.counts + _STEPS) * _U
        error = mean * (summed / (1 - summed) + 2 * _U) + 4 * _U * reach + 2 * _U * np.abs(value)
        low, high = value - error, value + error
    low = np.where(np.isfinite(low), np.maximum(low, fewest), fewest)
    high = np.where(np.isfinite(high), np.minimum(high, most), most)
    return _Area(low, np.maximum(low, high))
