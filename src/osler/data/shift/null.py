"""What a statistic does on identical data, from relabelled rows."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_MAX_SKEW = 2.0  # the skewness of an exponential; beyond it the Wilson–Hilferty approximation loses its monotony


class Null:
    """Values of a statistic under the hypothesis that both samples come from one distribution.

    Attributes:
        draws: ascending, float64, shape [permutations].
        mean, spread: mean and standard deviation of the draws.
    """

    __slots__ = ("draws", "mean", "spread")

    def __init__(self, draws: NDArray[np.float64]) -> None:
        self.draws = np.sort(np.asarray(draws, dtype=np.float64))
        if self.draws.size == 0 or not np.isfinite(self.draws).all():
            raise ValueError("a null needs finite draws")
        self.mean = float(self.draws.mean())
        self.spread = float(self.draws.std())

    def p(self, value: float) -> float:
        """The permutation p-value, (1 + draws at or above) / (1 + draws): never 0, valid at every size of sample.

        Source: Phipson & Smyth 2010 (Stat. Appl. Genet. Mol. Biol. 9:39).
        """
        above = self.draws.size - int(np.searchsorted(self.draws, value, side="left"))
        return (1 + above) / (1 + self.draws.size)

    def quantile(self, level: float) -> float:
        """The value that identical data exceed with probability `level`.

        Where at least five draws lie beyond it, it is an order statistic. Further out it is the larger of the largest
        draw and a three-moment gamma fit (Pearson type III, Wilson–Hilferty form), the usual approximation to the null of
        kernel two-sample statistics (Gretton et al. 2009, NeurIPS 22, section 3).
        """
        rank = level * (self.draws.size + 1)
        if rank >= 5:
            return float(self.draws[self.draws.size - math.floor(rank)])
        if self.spread == 0:
            return float(self.draws[-1])
        skew = float(np.mean(((self.draws - self.mean) / self.spread) ** 3))
        skew = min(max(skew, 1e-3), _MAX_SKEW)
        z = NormalDist().inv_cdf(1 - level)
        factor = (2 / skew) * ((1 + skew * z / 6 - skew * skew / 36) ** 3 - 1)
        fitted = self.mean + factor * self.spread
        return max(fitted, float(self.draws[-1])) if rank < 1 else fitted
