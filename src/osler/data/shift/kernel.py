"""Maximum mean discrepancy under a Gaussian kernel, exact and unbiased.

k(x, y) = exp(-|x-y|² / (2 h²)) with the bandwidth h. MMD² is estimated without bias, so it is around 0 on identical data
and may be slightly negative; MMD is the root of what is positive (Gretton et al. 2012, JMLR 13, lemma 6).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_BLOCK = 2048


def squared_distances(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Squared Euclidean distances of shape [len(a), len(b)], float32, not negative."""
    out: NDArray[np.float32] = a @ b.T
    out *= -2
    out += np.einsum("ij,ij->i", a, a)[:, None]
    out += np.einsum("ij,ij->i", b, b)[None, :]
    np.maximum(out, 0, out=out)
    return out


def median_bandwidth(rows: NDArray[np.float32], most: int = 1000) -> float:
    """The median distance between two different rows of an evenly spaced sample of at most `most`.

    Where more than half of the pairs coincide, the mean distance; 1 where all rows are equal.

    Source: the median heuristic of Gretton et al. 2012, JMLR 13, section 8.
    """
    sample = rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.intp)]
    squared = squared_distances(sample, sample)[np.triu_indices(len(sample), 1)]
    if squared.size == 0:
        return 1.0
    median = float(np.sqrt(np.median(squared)))
    return median if median > 1e-6 else float(np.sqrt(squared).mean(dtype=np.float64)) or 1.0


def gram(a: NDArray[np.float32], b: NDArray[np.float32], bandwidth: float) -> NDArray[np.float32]:
    """The kernel between the rows of `a` and of `b`, float32, shape [len(a), len(b)]."""
    out = squared_distances(a, b)
    out *= np.float32(-0.5 / (bandwidth * bandwidth))
    np.exp(out, out=out)
    return out


def mmd_squared(current: NDArray[np.float32], reference: NDArray[np.float32], bandwidth: float) -> float:
    """MMD² without bias, block by block: memory stays at 16 MB whatever the number of rows.

    Args:
        current, reference: shapes [n, d] and [m, d], at least two rows each.
        bandwidth: of the kernel, in the units of the rows.
    """
    n, m = len(current), len(reference)
    within_current = (_sum_within(current, bandwidth)) / (n * (n - 1))
    within_reference = (_sum_within(reference, bandwidth)) / (m * (m - 1))
    between = 0.0
    for i in range(0, n, _BLOCK):
        for j in range(0, m, _BLOCK):
            between += float(gram(current[i : i + _BLOCK], reference[j : j + _BLOCK], bandwidth).sum(dtype=np.float64))
    return within_current + within_reference - 2 * between / (n * m)


def _sum_within(rows: NDArray[np.float32], bandwidth: float) -> float:
    """The sum of the kernel over pairs of different rows."""
    total = 0.0
    for i in range(0, len(rows), _BLOCK):
        a = rows[i : i + _BLOCK]
        diagonal = gram(a, a, bandwidth)
        np.fill_diagonal(diagonal, 0)
        total += float(diagonal.sum(dtype=np.float64))
        for j in range(i + _BLOCK, len(rows), _BLOCK):
            total += 2 * float(gram(a, rows[j : j + _BLOCK], bandwidth).sum(dtype=np.float64))
    return total


class GramMMD:
    """MMD² of a pooled sample for any labelling of its rows, from one table of pairs."""

    def __init__(self, pooled: NDArray[np.float32], bandwidth: float) -> None:
        """`pooled`: both samples, shape [n + m, d]. Holds (n + m)² float32."""
        self._gram = gram(pooled, pooled, bandwidth)
        np.fill_diagonal(self._gram, 0)
        self._rows = self._gram.sum(axis=1, dtype=np.float64)
        self._total = float(self._rows.sum())

    def values(self, is_current: NDArray[np.bool_]) -> Floats:
        """MMD² for each of B labellings, shape [B, n + m], every one with the same number of current rows."""
        marks = is_current.astype(np.float32)
        n = int(is_current[0].sum())
        m = is_current.shape[1] - n
        within = np.einsum("bi,bi->b", (marks @ self._gram).astype(np.float64), marks)
        touching = marks.astype(np.float64) @ self._rows
        rest = self._total - 2 * touching + within
        between = touching - within
        return np.asarray(within / (n * (n - 1)) + rest / (m * (m - 1)) - 2 * between / (n * m), dtype=np.float64)


def distance(squared: float) -> float:
    """MMD from an unbiased MMD²: its root, 0 where it is not positive."""
    return float(np.sqrt(squared)) if squared > 0 else 0.0
