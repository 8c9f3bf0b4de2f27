"""The confident joint: counts of given against confidently predicted classes (Northcutt et al. 2021, JAIR 70)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators.channel import Floats, Ints, row_normalised


def thresholds(block: Floats, given: Ints) -> NDArray[np.float64]:
    """Mean predicted probability of each class over the rows that were given it; 1 for a class never given."""
    classes = len(block)
    own = block[given, np.arange(len(given))]
    count = np.bincount(given, minlength=classes)
    total = np.bincount(given, weights=own, minlength=classes)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def confident_joint(block: Floats, given: Ints) -> NDArray[np.float64]:
    """C[i, j]: rows given i whose likeliest class among those above their own threshold is j (K × K counts).

    Args:
        block: K × n float32 out-of-fold predictions.
        given: n given labels.
    """
    classes = len(block)
    above = np.where(block >= thresholds(block, given).astype(np.float32)[:, None], block, np.float32(-1))
    best = above.argmax(axis=0)
    counted = above[best, np.arange(len(best))] >= 0
    pairs = given[counted].astype(np.int64) * classes + best[counted]
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes).astype(np.float64)


def joint_matrix(joint: NDArray[np.float64], given: Ints) -> NDArray[np.float64]:
    """T from the confident joint, calibrated to the number of times each class was given (equation 3 of the paper)."""
    count = np.bincount(given, minlength=len(joint)).astype(np.float64)
    rows = row_normalised(joint, 1e-3) * count[:, None]
    return row_normalised(rows.T)


def cuts(block: Floats, given: Ints, joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Self-confidence below which a label given class i is called wrong: as many as the joint counts off its diagonal.

    This is pruning by class. A class never given has the cut 0.
    """
    own = block[given, np.arange(len(given))]
    out = np.zeros(len(joint))
    for i in range(len(joint)):
        mine = own[given == i]
        total = joint[i].sum()
        if len(mine) and total > 0:
            wrong = round(len(mine) * (1 - joint[i, i] / total))
            if wrong:
                out[i] = np.partition(mine, wrong - 1)[wrong - 1]
    return out


def prune(block: Floats, given: Ints, cut: NDArray[np.float64]) -> Floats:
    """One column per row: the given label, or the predictions without it where its self-confidence is within the cut."""
    at = np.arange(len(given))
    own = block[given, at]
    wrong = own <= cut[given]
    out = np.where(wrong, block, np.float32(0))
    out[given, at] = np.where(wrong, np.float32(0), np.float32(1))
    total = out.sum(axis=0)
    bare = total <= 0  # every probability was on the given label: nothing to change to
    out[given[bare], at[bare]] = 1
    out /= np.where(bare, np.float32(1), total)
    return out
