"""KL divergence without a model of the density: from distances to nearest neighbours."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from osler.data.shift.kernel import squared_distances

Floats = NDArray[np.float64]

_REACH = 256  # neighbours listed for each row at most; a k-th neighbour of one side further out is cut off there


class NeighbourKL:
    """KL(current || reference) in nats by k-nearest neighbours, and the same for relabelled rows.

    D = (d/n) Σ ln(ν_k(i) / ρ_k(i)) + ln(m / (n-1)), where ρ_k(i) and ν_k(i) are the distances from the i-th of n current
    rows to its k-th neighbour among the other current rows and among the m rows of the reference.

    Rows that occur more than once have distance 0 to each other; distances are held above a thousandth of the typical
    one, so ties count and do not blow up.

    Source: Wang, Kulkarni & Verdú 2009, IEEE Trans. Information Theory 55:5, equation 5; Pérez-Cruz 2008, ISIT.
    """

    def __init__(self, pooled: NDArray[np.float32], k: int, smaller: int) -> None:
        """A pooled sample.

        Args:
            pooled: both samples, shape [n + m, d].
            k: which neighbour.
            smaller: rows of the smaller sample; the smaller its share, the more neighbours must be listed.
        """
        rows, self.features = pooled.shape
        self.k = k
        reach = min(max(8 * k * rows // max(smaller, 1), 32), _REACH, rows - 1)
        self._order = np.empty((rows, reach), dtype=np.int32)
        self._log = np.empty((rows, reach), dtype=np.float32)
        for start in range(0, rows, 512):
            block = squared_distances(pooled[start : start + 512], pooled)
            own = np.arange(len(block))
            block[own, start + own] = np.inf
            nearest = np.argpartition(block, reach - 1, axis=1)[:, :reach]
            distance = np.take_along_axis(block, nearest, axis=1)
            ranked = np.argsort(distance, axis=1, kind="stable")
            self._order[start : start + 512] = np.take_along_axis(nearest, ranked, axis=1)
            self._log[start : start + 512] = np.take_along_axis(distance, ranked, axis=1)
        typical = float(np.median(self._log[:, min(k, reach) - 1]))
        floor = max(typical * 1e-6, 1e-30)  # squared distances: a thousandth of the typical one
        self._log = 0.5 * np.log(np.maximum(self._log, floor))

    def value(self, is_current: NDArray[np.bool_]) -> float:
        """The estimate where the rows marked in `is_current` (shape [n + m]) are the current ones."""
        mine = np.flatnonzero(is_current)
        labels = is_current[self._order[mine]]
        logs = self._log[mine]
        rho = self._kth(labels, logs)
        nu = self._kth(~labels, logs)
        n, m = len(mine), len(is_current) - len(mine)
        return float(self.features * np.mean(nu - rho, dtype=np.float64) + math.log(m / (n - 1)))

    def _kth(self, labels: NDArray[np.bool_], logs: NDArray[np.float32]) -> NDArray[np.float32]:
        counts = np.cumsum(labels, axis=1, dtype=np.int16)
        reached = counts >= self.k
        at = np.where(reached[:, -1], reached.argmax(axis=1), labels.shape[1] - 1)
        kth: NDArray[np.float32] = logs[np.arange(len(logs)), at]
        return kth
