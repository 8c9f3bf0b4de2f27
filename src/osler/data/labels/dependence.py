"""Is a label that contradicts a confident prediction noise, or has the model erred?

Under a noise channel that depends on the class alone, the label given to a confidently predicted row says nothing more
about the row: among the rows predicted as k, those given j have no higher predicted probability of j than the others. A
model's own errors, and noise that depends on the instance, fall where the model already half expects class j. The AUROC of
that probability tells the two apart (Mann & Whitney 1947), whatever the calibration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osler.data.labels.sample import Sample
from osler.data.need import need

_FEWEST = 10


@dataclass(frozen=True)
class Dependence:
    """What the confident rows say.

    Attributes:
        rows: confident rows looked at.
        contradicted: how many of them were given another class than predicted (a class that the model knows).
        low, high: 95 % interval of their share (Wilson 1927).
        auroc: dependence of the given class on the row, 0.5 for none; NaN where nothing is contradicted.
        error: its standard error where there is no dependence.
        ties: share of ties among the probabilities compared, weighted like the AUROC.
        covered: share of all given labels whose class the model knows.
    """

    rows: int
    contradicted: int
    low: float
    high: float
    auroc: float
    error: float
    ties: float
    covered: float

    @property
    def share(self) -> float:
        """Share of confident rows that were given another class."""
        return self.contradicted / self.rows if self.rows else 0.0


def measure(sample: Sample, confident_share: float, recall_floor: float) -> Dependence:
    """Look at the most confident part of each predicted class.

    Args:
        sample: the rows, predictions as given (not sharpened).
        confident_share: part of each predicted class that is looked at.
        recall_floor: share of the rows given a class that must be predicted as it before its labels count.

    Raises:
        DataError: scipy is not installed.
    """
    rankdata = need("scipy.stats", "data", "judging label noise").rankdata
    block, given = sample.block, sample.given
    classes = len(block)
    predicted = block.argmax(axis=0)
    confidence = block[predicted, np.arange(len(given))]
    count = np.bincount(given, minlength=classes)
    own = np.bincount(given[predicted == given], minlength=classes)
    known = own >= recall_floor * np.maximum(count, 1)
    covered = float(count[known].sum() / max(1, count.sum()))
    rows = contradicted = 0
    weight = area = variance = tied = 0.0
    for k in np.flatnonzero(known):
        mine = np.flatnonzero(predicted == k)
        if len(mine) < _FEWEST:
            continue
        take = max(_FEWEST, int(np.ceil(confident_share * len(mine))))
        best = mine[np.argsort(-confidence[mine], kind="stable")[:take]]
        labels = given[best]
        counted = known[labels]
        rows += int(counted.sum())
        others = np.bincount(labels, minlength=classes)
        others[k] = 0
        others[~known] = 0
        contradicted += int(others.sum())
        against = np.flatnonzero(others)
        if not len(against) or others.max() == len(best):
            continue
        ranks = rankdata(block[np.ix_(against, best)], axis=1)
        n = len(best)
        for j, rank in zip(against, ranks, strict=True):
            there = labels == j
            n1, n2 = int(others[j]), n - int(others[j])
            # the variance of the ranks against that without ties gives the share of ties
            ties = 1 - float(rank.var()) * 12 / (n * n - 1)
            area += n1 * (float(rank[there].sum()) - n1 * (n1 + 1) / 2) / (n1 * n2)
            variance += n1 * n1 * (n + 1) / (12 * n1 * n2) * (1 - ties)
            tied += n1 * ties
            weight += n1
    low, high = wilson(contradicted, rows)
    if not weight:
        return Dependence(rows, contradicted, low, high, float("nan"), float("nan"), 0.0, covered)
    return Dependence(rows, contradicted, low, high, area / weight, variance**0.5 / weight, tied / weight, covered)


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927); (0, 1) of nothing."""
    if not of:
        return 0.0, 1.0
    p, shrink = hits / of, z * z / of
    middle = (p + shrink / 2) / (1 + shrink)
    half = z / (1 + shrink) * (p * (1 - p) / of + shrink / (4 * of)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)
