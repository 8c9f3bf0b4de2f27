"""All of the current rows against all of the reference: exact statistics with a permutation null."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.data.shift.gaussian import Moments, gaussian_kl, intensity
from osler.data.shift.kernel import GramMMD, distance
from osler.data.shift.neighbours import NeighbourKL
from osler.data.shift.null import Null
from osler.data.shift.reference import Reference
from osler.data.shift.stretches import deal, stretch
from osler.data.shift.tiers import Threshold, Tier, calibrated, excess

Floats = NDArray[np.float64]
STATISTICS = {"kl": "Gaussian KL", "knn_kl": "nearest-neighbour KL", "mmd": "MMD"}


class Statistic(NamedTuple):
    """One statistic of the whole comparison.

    Attributes:
        key, name: one of `STATISTICS`.
        value: KL in nats above the null's mean, or MMD; not negative.
        threshold: where its tiers begin.
        p: permutation p-value.
        tier: of the value.
    """

    key: str
    name: str
    value: float
    threshold: Threshold
    p: float
    tier: Tier


def compare(
    current: Floats,
    held: Floats,
    reference: Reference,
    level: float,
    time: float = 1.0,
    seed: int = 0,
    progress: Progress = quiet,
) -> list[Statistic]:
    """The three statistics, which share the false-alarm rate `level`.

    Where rows hang together in time the nearest neighbour of a row is the one before or after it, whatever the
    distribution; nearest neighbours are then left out.

    Args:
        current, held: standardised rows of both sides, shapes [n, d] and [m, d].
        reference: what the rows were standardised by.
        level: false-alarm rate of the whole comparison.
        time: rows over which the given rows are alike.
    """
    s = reference.settings
    n, m = len(current), len(held)
    pooled = np.concatenate([current, held])
    small = pooled.astype(np.float32)
    projected = pooled if reference.basis is None else pooled @ reference.basis
    length = min(stretch(time), n, m)
    marks = _labellings(n, m, s.permutations, length, seed)
    mmd = GramMMD(small, reference.bandwidth).values(marks)
    near = NeighbourKL(small, s.neighbours, min(n, m)) if length == 1 else None
    weight = intensity(projected[n:], min(n, m), s.shrinkage)
    both = Moments.of(projected)
    kl = np.empty((len(marks), 1 if near is None else 2))
    for i, mark in enumerate(marks):
        part = Moments.of(projected[mark])
        kl[i, 0] = gaussian_kl(part, both.minus(part), weight)
        if near is not None:
            kl[i, 1] = near.value(mark)
        progress("permutations", i + 1, len(marks))
    share = level / (kl.shape[1] + 1)
    own_kl, own_mmd = (0.0, 0.0) if reference.homogeneous else (reference.own_kl, reference.own_mmd)
    out = []
    for key, values in zip(STATISTICS, kl.T):
        null = Null(values[1:])
        threshold = calibrated(s.kl_alert, s.kl_freeze, excess(null, share), null.mean, own_kl)
        out.append(_statistic(key, max(float(values[0]) - null.mean, 0.0), threshold, null.p(float(values[0]))))
    null = Null(mmd[1:])
    typical = distance(float(np.quantile(null.draws, 0.75)))
    threshold = calibrated(s.mmd_alert, s.mmd_freeze, distance(null.quantile(share)), typical, own_mmd)
    out.append(_statistic("mmd", distance(float(mmd[0])), threshold, null.p(float(mmd[0]))))
    return out


def _statistic(key: str, value: float, threshold: Threshold, p: float) -> Statistic:
    return Statistic(key, STATISTICS[key], value, threshold, p, threshold.tier(value))


def _labellings(n: int, m: int, draws: int, length: int, seed: int) -> NDArray[np.bool_]:
    """The true labelling (the first n rows are current), then random ones; shape [draws + 1, n + m]."""
    rng = np.random.default_rng(seed)
    marks = np.zeros((draws + 1, n + m), dtype=np.bool_)
    marks[0, :n] = True
    for row in marks[1:]:
        row[deal(rng, n + m, n, length)] = True
    return marks
