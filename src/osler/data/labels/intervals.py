"""How far the noise matrix may be off: a parametric bootstrap of its estimation (Efron & Tibshirani 1993, section 6.5).

True classes are drawn from the fitted posteriors and given labels from the fitted matrix, the matrix is estimated again from
them, and what the estimates scatter, and by how much they miss the matrix they came from, makes the interval. It covers
chance and the estimator's own bias, not predictions that are wrong about the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators import confident, em
from osler.data.labels.estimators.channel import Channel
from osler.data.labels.sample import Sample, positions, thin

_CELLS = 60_000  # rows times classes of one resample
_PER_CLASS = 40


@dataclass(frozen=True, eq=False)
class Intervals:
    """Ends of the intervals.

    Attributes:
        low, high: of the entries of the noise matrix, K × K each.
        rate_low, rate_high: of the share of wrong labels.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rate_low: float
    rate_high: float


def intervals(
    sample: Sample,
    channel: Channel,
    prior: NDArray[np.float64],
    rounds: int,
    resamples: int,
    coverage: float,
    seed: int = 0,
) -> Intervals:
    """Intervals of the channel's matrix and of the noise rate that follows from it.

    The scatter is measured on a part of the sample and shrunk by the square root of the share; the bias is not shrunk.

    Args:
        sample: the rows from which the channel was estimated.
        channel: the fitted channel.
        prior: shares of the true classes, K.
        rounds: rounds of EM that it took.
        resamples: how many bootstrap estimates.
        coverage: of the intervals, e.g. 0.95.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    classes = len(sample.block)
    few = thin(sample, max(_CELLS // classes, _PER_CLASS * classes))
    matrix = channel.matrix
    clean = channel.clean(few.block)
    seen = matrix.T.astype(np.float32) @ clean
    seen /= seen.sum(axis=0)
    cumulated = clean.cumsum(axis=0)
    channel_cumulated = matrix.cumsum(axis=1)
    n = len(few.given)
    estimates = np.empty((resamples, classes, classes))
    for b in range(resamples):
        true = _inverse(cumulated, rng.random(n, dtype=np.float32) * cumulated[-1])
        given = _inverse(channel_cumulated[true].T, rng.random(n))
        order = np.argsort(given, kind="stable")
        block, labels = seen[:, order], given[order]
        start = confident.joint_matrix(confident.confident_joint(block, labels), labels)
        estimates[b] = em.fit(block, positions(labels, classes), start, rounds)
    z = NormalDist().inv_cdf(0.5 + coverage / 2) * (n / max(n, len(sample.given))) ** 0.5
    half = z * estimates.std(axis=0, ddof=1) + np.abs(estimates.mean(axis=0) - matrix)
    rates = 1 - np.diagonal(estimates, axis1=1, axis2=2) @ prior
    rate = float(1 - np.diag(matrix) @ prior)
    rate_half = float(z * rates.std(ddof=1) + abs(rates.mean() - rate))
    return Intervals(
        np.clip(matrix - half, 0, 1),
        np.clip(matrix + half, 0, 1),
        max(0.0, rate - rate_half),
        min(1.0, rate + rate_half),
    )


def _inverse(cumulated: NDArray[np.floating], at: NDArray[np.floating]) -> NDArray[np.int64]:
    """For each column the first class whose cumulated share exceeds the draw."""
    out: NDArray[np.int64] = np.minimum((cumulated <= at).sum(axis=0), len(cumulated) - 1).astype(np.int64)
    return out
