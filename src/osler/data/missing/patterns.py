"""Whether missing values come by chance: blocks of rows, a rise since training, and holes that predict the label."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.data.missing.columns import Bools
from osler.data.missing.models import is_classes
from osler.data.need import need


def block_probability(rows: int, missing: int, longest: int) -> float:
    """Upper bound on the chance of a run so long if rows were missing independently.

    A run of L begins at one of at most n - L + 1 rows and each of its rows is missing with chance k/n:
    P ≤ (n - L + 1) (k/n)^L (union bound).
    """
    if missing >= rows or longest <= 0:
        return 1.0
    return float(min(1.0, math.exp(math.log(rows - longest + 1) + longest * math.log(missing / rows))))


def rise_probability(missing: int, rows: int, before: int, rows_before: int) -> float:
    """One-sided p-value of the share being no larger than before (two proportions, pooled, with Yates's correction)."""
    pooled = (missing + before) / (rows + rows_before)
    error = math.sqrt(pooled * (1 - pooled) * (1 / rows + 1 / rows_before))
    if error == 0:
        return 1.0
    correction = 0.5 * (1 / rows + 1 / rows_before)
    z = (missing / rows - before / rows_before - correction) / error
    return 0.5 * math.erfc(z / math.sqrt(2))


@dataclass(frozen=True, slots=True)
class Tie:
    """How missingness goes with the label.

    Attributes:
        strength: 0 to 1: Cramér's V for classes, |2 AUC - 1| for numbers.
        p: p-value of no association.
    """

    strength: float
    p: float


def tie_to_label(missing: Bools, y: npt.NDArray[Any], min_cells: int) -> Tie | None:
    """The association of missing or not with the label; None where there are too few of either."""
    holes = int(missing.sum())
    if min(holes, len(missing) - holes) < min_cells:
        return None
    stats = need("scipy.stats", "data")
    if is_classes(y):
        _, codes = np.unique(y if y.dtype.kind in "fiub" else y.astype(str), return_inverse=True)
        counts = np.zeros((2, int(codes.max()) + 1))
        np.add.at(counts, (missing.astype(np.int64), codes.ravel()), 1)
        if counts.shape[1] < 2:
            return None
        found = stats.chi2_contingency(counts, correction=False)
        return Tie(float(np.sqrt(found.statistic / len(y))), float(found.pvalue))
    values = y.astype(np.float64)
    found = stats.mannwhitneyu(values[missing], values[~missing])
    auc = float(found.statistic) / (holes * (len(y) - holes))
    return Tie(abs(2 * auc - 1), float(found.pvalue))
