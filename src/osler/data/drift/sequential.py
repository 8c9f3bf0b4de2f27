"""A test that may be looked at after every row: its false-alarm bound holds for the whole life of a stream.

Fixed windows spend their false-alarm rate anew at every look. A test martingale does not: it starts at 1, and on data
that have not changed the probability that it ever reaches 1/alpha is at most alpha (Ville's inequality), whenever and
however often one looks, and whatever made one stop.

How it is made here, for one column:

1. Values become symbols by a binning that was fixed on one random half of the reference. The other half goes into an urn.
2. Each current symbol gets a conformal p-value: its randomised rank among the urn and itself. Then it goes into the urn
   too. If the urn's half of the reference and the current rows are exchangeable (rows drawn independently from one
   distribution are), these p-values are independent and uniform (Vovk, Gammerman & Shafer 2005, *Algorithmic Learning in
   a Random World*, theorem 8.1).
3. Money is bet against uniformity. A bettor's density for the next p-value is a Dirichlet-smoothed histogram of those
   before it, so its wealth, a product of densities, is a martingale. Bettors that start afresh every `restart` rows share
   the initial money (the i-th gets 1 / ((i+1)(i+2))), so a change late in the stream is met by a bettor whose histogram
   holds nothing of the time before it. Bettors with next to nothing are sent away, which can only lower the sum.

The proof needs exchangeability and nothing else: no continuity, no sample size, no independence between columns. Rows that
depend on their neighbours in time (autocorrelation, a daily cycle that the reference covers but a night does not) are not
exchangeable; then an alarm says just that, and the bound does not hold.

For F columns each is tested at alpha/F, which holds under every dependence between them (Bonferroni).

Sources: betting as testing, Shekhar & Ramdas 2023 (arXiv:2112.09162); conformal test martingales, Vovk 2021
(arXiv:2102.09204); mixtures over starting times, Shin, Ramdas & Rinaldo 2022 (arXiv:2203.03532).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CELLS = 10  # of the bettors' histograms: coarse enough to be learnt in some hundred rows
STRENGTHS = (1.0, 16.0)  # Dirichlet prior of each cell: a bold bettor for large changes, a careful one for small
MOST_BETTORS = 64


class SequentialTest:
    """One column's test martingale, in logarithms.

    Attributes:
        urn: how often each symbol has been seen, int64, shape [symbols].
        rows: current rows seen.
        log_e: logarithm of the e-value now.
        log_peak: its largest value so far; the alarm is that this reached ln(1/alpha).
        restart: rows after which a fresh bettor comes in.
    """

    __slots__ = ("_bettors", "_counts", "_rng", "_starts", "_strengths", "log_e", "log_peak", "restart", "rows", "urn")

    def __init__(self, urn: Ints, restart: int = 500, seed: int = 0) -> None:
        """A test against an urn.

        Args:
            urn: counts of each symbol in the half of the reference that did not fix the binning, shape [symbols].
            restart: rows after which a fresh bettor comes in.
            seed: of the random ranks among equal symbols; must not depend on the data.

        Raises:
            ValueError: the urn is empty or has a negative count.
        """
        self.urn: Ints = np.array(urn, dtype=np.int64)
        if self.urn.ndim != 1 or self.urn.size == 0 or (self.urn < 0).any():
            raise ValueError("an urn is a list of counts")
        self.restart = restart
        self.rows = 0
        self.log_e = self.log_peak = 0.0
        self._rng = np.random.default_rng(seed)
        self._starts = 0
        self._bettors: Floats = np.empty(0)
        self._strengths: Floats = np.empty(0)
        self._counts: Floats = np.empty((0, CELLS))

    def update(self, symbols: NDArray[np.integer[Any]]) -> float:
        """Take symbols into account, in their order.

        Args:
            symbols: integers from 0 to len(urn) - 1, shape [n].

        Returns:
            the logarithm of the e-value after them.
        """
        values: Ints = np.asarray(symbols, dtype=np.int64)
        start = 0
        while start < len(values):
            if self.rows % self.restart == 0:
                self._enter()
            take = min(self.restart - self.rows % self.restart, len(values) - start)
            self._bet(np.bincount(self._cells(values[start : start + take]), minlength=CELLS).astype(np.float64))
            self.rows += take
            start += take
        return self.log_e

    def crossed(self, alpha: float) -> bool:
        """Whether the e-value has ever reached 1/alpha; on unchanged data the probability of that is at most alpha."""
        return self.log_peak >= -math.log(alpha)

    def _cells(self, symbols: Ints) -> Ints:
        """The cell of each symbol's conformal p-value; the symbols then lie in the urn."""
        n = len(symbols)
        every = np.arange(n)
        seen = np.zeros((n, len(self.urn)), dtype=np.int32)
        seen[every, symbols] = 1
        np.cumsum(seen, axis=0, out=seen)  # how often each symbol came up in this batch, the row itself included
        same_here = seen[every, symbols].astype(np.int64)
        last = seen[-1].astype(np.int64)
        np.cumsum(seen, axis=1, out=seen)
        below = (np.cumsum(self.urn) - self.urn)[symbols] + seen[every, symbols] - same_here
        total = int(self.urn.sum()) + 1 + every
        p = (below + self._rng.random(n) * (self.urn[symbols] + same_here)) / total
        self.urn += last
        return np.minimum((p * CELLS).astype(np.int64), CELLS - 1)

    def _enter(self) -> None:
        share = 1.0 / ((self._starts + 1) * (self._starts + 2) * len(STRENGTHS))
        self._starts += 1
        self._bettors = np.concatenate([self._bettors, np.full(len(STRENGTHS), math.log(share))])
        self._strengths = np.concatenate([self._strengths, STRENGTHS])
        self._counts = np.concatenate([self._counts, np.zeros((len(STRENGTHS), CELLS))])
        if len(self._bettors) > MOST_BETTORS:
            # never the newest: they have had no chance yet
            old = np.argsort(self._bettors[: -len(STRENGTHS)])[len(self._bettors) - MOST_BETTORS :]
            keep = np.sort(np.concatenate([old, np.arange(len(self._bettors) - len(STRENGTHS), len(self._bettors))]))
            self._bettors, self._strengths, self._counts = (
                self._bettors[keep],
                self._strengths[keep],
                self._counts[keep],
            )

    def _bet(self, arrived: Floats) -> None:
        """Wealth after p-values fell into cells so often; the order within makes no difference to the product."""
        strength = self._strengths[:, None]
        before = self._counts.sum(axis=1) + CELLS * self._strengths
        n = float(arrived.sum())
        gain = (log_gamma(self._counts + strength + arrived) - log_gamma(self._counts + strength)).sum(axis=1)
        self._bettors = self._bettors + gain + log_gamma(before) - log_gamma(before + n) + n * math.log(CELLS)
        self._counts = self._counts + arrived
        idle = math.log(1.0 / (self._starts + 1))  # money of the bettors that are still to come
        self.log_e = float(np.logaddexp.reduce(np.append(self._bettors, idle)))
        self.log_peak = max(self.log_peak, self.log_e)

    def state(self) -> dict[str, Any]:
        """JSON-ready; `SequentialTest.of` continues from it exactly."""
        return {
            "urn": self.urn.tolist(),
            "restart": self.restart,
            "rows": self.rows,
            "log_e": self.log_e,
            "log_peak": self.log_peak,
            "starts": self._starts,
            "bettors": self._bettors.tolist(),
            "strengths": self._strengths.tolist(),
            "counts": self._counts.tolist(),
            "rng": self._rng.bit_generator.state,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> SequentialTest:
        """The test that `state` was taken from.

        Raises:
            KeyError, TypeError, ValueError: it is no such state.
        """
        out = cls(np.array(state["urn"], dtype=np.int64), int(state["restart"]))
        out.rows, out._starts = int(state["rows"]), int(state["starts"])
        out.log_e, out.log_peak = float(state["log_e"]), float(state["log_peak"])
        out._bettors = np.array(state["bettors"], dtype=np.float64)
        out._strengths = np.array(state["strengths"], dtype=np.float64)
        out._counts = np.array(state["counts"], dtype=np.float64).reshape(len(out._bettors), CELLS)
        out._rng.bit_generator.state = state["rng"]
        return out


class Binning:
    """From values to symbols: quantile bins of numbers, then one symbol each for -Inf, +Inf and missing.

    Attributes:
        edges: ascending; bin k holds values in (edges[k-1], edges[k]], the last is open.
    """

    __slots__ = ("edges",)

    def __init__(self, edges: Floats) -> None:
        self.edges = np.asarray(edges, dtype=np.float64)

    @classmethod
    def of(cls, values: Floats, bins: int = 32) -> Binning:
        """Bins of about equal counts over the finite ones of the values, fewer where values repeat."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return cls(np.empty(0))
        inner = np.quantile(finite, np.linspace(0, 1, bins + 1)[1:-1], method="lower")
        return cls(np.unique(inner))

    @property
    def size(self) -> int:
        """Number of symbols."""
        return len(self.edges) + 4

    def symbols(self, values: Floats) -> Ints:
        """The symbol of each value, int64, shape [n]."""
        out = np.searchsorted(self.edges, values, side="left").astype(np.int64)
        last = len(self.edges)
        out[np.isneginf(values)] = last + 1
        out[np.isposinf(values)] = last + 2
        out[np.isnan(values)] = last + 3
        return out


def split(values: Floats, seed: int = 0, bins: int = 32) -> tuple[Binning, Ints]:
    """A binning from one random half of a reference column, and the urn of the other half.

    Args:
        values: float64, shape [n]; NaN stands for missing.
        seed: of the division; must not depend on the data.
        bins: of the numbers.
    """
    order = np.random.default_rng(seed).permutation(len(values))
    half = len(values) // 2
    binning = Binning.of(values[order[:half]], bins)
    return binning, np.bincount(binning.symbols(values[order[half:]]), minlength=binning.size).astype(np.int64)


_SHIFT = 8


def log_gamma(x: Floats) -> Floats:
    """ln Γ(x) for x > 0, to 1e-12 relative: Stirling's series at x + 8 (Abramowitz & Stegun 6.1.41)."""
    x = np.asarray(x, dtype=np.float64)
    product = np.ones_like(x)
    for i in range(_SHIFT):
        product *= x + i
    y = x + _SHIFT
    series = 1 / (12 * y) - 1 / (360 * y**3) + 1 / (1260 * y**5) - 1 / (1680 * y**7)
    out: Floats = (y - 0.5) * np.log(y) - y + 0.5 * math.log(2 * math.pi) + series - np.log(product)
    return out
