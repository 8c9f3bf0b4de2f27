"""What the statistics do on identical data, at the sizes at hand, and the correction across features.

Every p-value here is valid at any size of sample and for any distribution, ties included: it falls at or below a level
on identical data no more often than that level says. Both assume rows that are drawn independently; rows that hang
together (several of one customer, a slow sensor) vary more than these nulls, which is why a column also has to move by
an effect that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osler.data.drift.grid import Grid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ENOUGH = 10
_BLOCK = 32
_OUTER_BINS = 48
_INNER_CELLS = 160
_MOST_COLOURS = 900_000_000


def ks_p(distance: float, n: int, m: int) -> float:
    """The probability that two samples of one distribution lie at least this far apart by Kolmogorov–Smirnov.

    The two-sample Dvoretzky–Kiefer–Wolfowitz bound C exp(-2 d² n m / (n + m)), which near the decision is within a few
    per cent of the asymptotic null. C = 2 (Massart's constant) holds for unequal sizes and, for equal ones, from 458 on;
    below, C = e (Wei & Dudley 2012, Statistics & Probability Letters 82; for unequal sizes checked there up to 200 and
    conjectured beyond). Ties make the true probability smaller.
    """
    constant = math.e if n == m < 458 or min(n, m) < 4 else 2.0
    return min(1.0, constant * math.exp(-2.0 * distance * distance * n * m / (n + m)))


def ks_critical(level: float, n: int, m: int) -> float:
    """The distance whose `ks_p` is `level`; beyond 1 where no distance of so small samples is significant."""
    constant = math.e if n == m < 458 or min(n, m) < 4 else 2.0
    return math.sqrt(math.log(constant / level) * (n + m) / (2.0 * n * m))


def share_p(hits: int, n: int, reference_hits: int, m: int) -> float:
    """Two-sided p-value for a share: `hits` of n rows now, `reference_hits` of m before.

    Twice the smaller tail of the hypergeometric distribution (Fisher's exact test), summed term by term.
    """
    total, marked = n + m, hits + reference_hits
    if n == 0 or m == 0 or marked in (0, total):
        return 1.0
    expected = n * marked / total
    upward = hits >= expected
    term = math.exp(_log_hypergeometric(hits, n, marked, total))
    tail, k = term, hits
    while term > tail * 1e-17:
        if upward:
            term *= (marked - k) * (n - k) / ((k + 1) * (total - marked - n + k + 1))
            k += 1
        else:
            term *= k * (total - marked - n + k) / ((marked - k + 1) * (n - k + 1))
            k -= 1
        tail += term
    return min(1.0, 2.0 * tail)


def _log_hypergeometric(k: int, n: int, marked: int, total: int) -> float:
    return _log_choose(marked, k) + _log_choose(total - marked, n - k) - _log_choose(total, n)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def unseen_p(hits: int, n: int, singletons: int, m: int) -> float:
    """p-value for `hits` of n rows in categories that m reference rows do not hold.

    On identical data the share of unseen categories is about the share of reference rows whose category occurs once
    (Good–Turing). That share plus its bound, √(2 ln(1/δ) / m) at δ = 0.001 (McAllester & Schapire 2000, leading term),
    is taken as the probability of a hit, and the rest is the binomial tail, bounded by Chernoff's exp(-n KL).
    """
    if hits == 0:
        return 1.0
    expected = min(1.0, (singletons + 1) / m + math.sqrt(2.0 * math.log(1000.0) * max(singletons, 1)) / m)
    share = hits / n
    if share <= expected:
        return 1.0
    divergence = share * math.log(share / expected)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - expected))
    return min(1.0, math.exp(-n * divergence))


def pooled(reference: Ints, current: Ints, least: float = 5.0) -> tuple[Ints, Ints]:
    """The counts with rare categories put together into one last cell.

    Rare are those with fewer than `least` expected rows in either sample, the usual condition of the asymptotic null of
    χ² (Cochran 1954). If the last cell is rare itself, the smallest other one joins it.
    """
    n, m = int(reference.sum()), int(current.sum())
    part = min(n, m) / (n + m)
    rare = (reference + current) * part < least
    if not rare.any():
        return reference, current
    rest = (reference + current)[rare].sum() * part
    if rest < least and not rare.all():
        kept = np.flatnonzero(~rare)
        rare[kept[np.argmin((reference + current)[kept])]] = True
    one, two = (np.append(counts[~rare], counts[rare].sum()) for counts in (reference, current))
    return one, two


def chi_square_p(reference: Ints, current: Ints) -> float:
    """p-value of Pearson's χ² for `pooled` counts over the same cells; 1 where there are fewer than two."""
    table = np.stack((reference, current)).astype(np.float64)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return _chi_square_tail(statistic, table.shape[1] - 1)


def _chi_square_tail(statistic: float, freedom: int) -> float:
    from osler.data.need import need

    special = need("scipy.special", why="comparing categories")
    return float(special.chdtrc(freedom, statistic))


def wasserstein_p(reference: Grid, current: Grid, level: float, most: int, seed: int = 0) -> float:
    """p-value of the Wasserstein distance by permutation, for the finite values of two grids over the same edges.

    Both samples are put together and dealt out anew, cell by cell (a cell is a bin in the tails and a group of bins
    in the middle; its values stand at the cell's common mean, which no dealing changes). Under the hypothesis every
    deal is as likely as the one at hand, so the share of deals at least as far apart is a valid p-value, whatever the
    distribution: heavy tails widen the null just as they widen the statistic. The dealing ends early once ten deals
    lie as far apart (Besag & Clifford 1991, Biometrika 78), and late enough to reach `level`.

    Args:
        reference, current: at least one finite value each.
        level: p-value that the decision needs to resolve.
        most: deals after which to stop in any case.
        seed: of the dealing.
    """
    counts, dealt, positions = _cells(reference, current)
    n = int(dealt.sum())
    m = int(counts.sum()) - n
    gaps = np.diff(positions)
    observed = _distance(dealt[None, :], counts, n, m, gaps)[0] * (1 - 1e-12)
    rng = np.random.default_rng(seed)
    needed = min(most, math.ceil(2.0 / level))
    beyond = deals = 0
    while deals < needed and beyond < _ENOUGH:
        block = min(_BLOCK, needed - deals)
        far = _distance(_deal(rng, counts, n, block), counts, n, m, gaps) >= observed
        for hit in far:
            deals += 1
            beyond += bool(hit)
            if beyond == _ENOUGH:
                return beyond / deals
    return (beyond + 1) / (deals + 1)


def _cells(reference: Grid, current: Grid) -> tuple[Ints, Ints, Floats]:
    """Counts of both together, of the current sample, and the mean value, per cell that holds anything."""
    now, pooled = current.counts, reference.counts + current.counts
    bins = np.flatnonzero(pooled)
    now, pooled = now[bins], pooled[bins]
    anchors = np.append(reference.edges, reference.edges[-1])[bins]
    side = np.where(bins == reference.edges.size, 1.0, -1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        offset = (reference.gaps[bins] + current.gaps[bins]) / pooled
    low = np.minimum(reference.lows[bins], current.lows[bins])
    high = np.maximum(reference.highs[bins], current.highs[bins])
    position = np.clip(np.where(np.isfinite(offset), anchors + side * offset, low / 2 + high / 2), low, high)
    inner = bins.size - 2 * _OUTER_BINS
    if inner > _INNER_CELLS:
        middle = _OUTER_BINS + (np.arange(_INNER_CELLS) * inner) // _INNER_CELLS
        starts = np.concatenate((np.arange(_OUTER_BINS), middle, np.arange(bins.size - _OUTER_BINS, bins.size)))
        weight = np.add.reduceat(pooled, starts)
        position = np.add.reduceat(
            position * (pooled / np.repeat(weight, np.diff(np.append(starts, bins.size)))), starts
        )
        now, pooled = np.add.reduceat(now, starts), weight
    return pooled, now, position


def _deal(rng: np.random.Generator, counts: Ints, n: int, deals: int) -> Ints:
    total = int(counts.sum())
    if total < _MOST_COLOURS:
        return rng.multivariate_hypergeometric(counts, n, size=deals, method="marginals")
    drawn = rng.multinomial(n, counts / total, size=deals)
    return np.minimum(drawn, counts)


def _distance(dealt: Ints, counts: Ints, n: int, m: int, gaps: Floats) -> Floats:
    """Wasserstein distance of each deal from the rest; int[deals, cells] → float64[deals]."""
    one = np.cumsum(dealt[:, :-1], axis=1) / n
    two = (np.cumsum(counts[:-1]) - np.cumsum(dealt[:, :-1], axis=1)) / m
    result: Floats = np.abs(one - two) @ gaps
    return result


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: values at or below α are significant with a family-wise error of at most α.

    It needs no assumption on how the tests depend on each other (Holm 1979, Scandinavian Journal of Statistics 6), which
    features of one table always do.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted
