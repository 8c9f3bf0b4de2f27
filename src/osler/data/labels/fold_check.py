"""Are the predictions out of fold? A model judged on the rows it learned agrees with their wrong labels too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.settings.labels import Labels
from osler.data.labels.inputs import Inputs
from osler.data.labels.sample import Sample
from osler.data.need import DataError

_HOW = "osler.cross_validated_probs(X, y) makes out-of-fold predictions"
_FEWEST = 20
_FOLD_AHEAD = 0.1


def judge(
    inputs: Inputs, sample: Sample, out_of_fold: bool | None, folds: NDArray[Any] | None, settings: Labels
) -> str:
    """What to tell about it; empty where nothing is in doubt.

    Args:
        inputs: labels and predictions.
        sample: rows of them.
        out_of_fold: what the caller says.
        folds: N fold numbers, if the caller has them.
        settings: thresholds.

    Raises:
        DataError: they are not out of fold, or `folds` does not fit.
    """
    if out_of_fold is False:
        raise DataError(f"predictions for rows that the model was trained on cannot show wrong labels; {_HOW}")
    if folds is not None:
        return _folds(inputs, folds)
    if out_of_fold:
        return ""
    agreement = float((sample.block.argmax(axis=0) == sample.given).mean())
    if agreement >= settings.memorised:
        return (
            f"the predictions repeat {agreement:.1%} of the given labels: either nearly all are right, or the model was "
            f"trained on these rows and repeats wrong ones too. {_HOW}; out_of_fold=True says that they are"
        )
    return f"nobody said that the predictions are out of fold, and it was taken that they are; {_HOW}"


def _folds(inputs: Inputs, folds: NDArray[Any]) -> str:
    if folds.shape != inputs.codes.shape:
        raise DataError(
            f"folds has shape {folds.shape}; give one fold number for each of the {len(inputs.codes):,} labels"
        )
    numbers, which = np.unique(folds, return_inverse=True)
    if len(numbers) < 2:
        raise DataError("folds holds one fold only; out-of-fold predictions need at least two")
    agrees = np.empty(len(folds), dtype=bool)
    for where, block in inputs.blocks(65_536):
        agrees[where] = block.argmax(axis=0) == inputs.codes[where]
    count = np.bincount(which)
    rate = np.bincount(which, weights=agrees) / count
    usual = float(np.median(rate))
    ahead = np.flatnonzero((count >= _FEWEST) & (rate > usual + _FOLD_AHEAD) & (rate > 0.98))
    if len(ahead):
        raise DataError(
            f"the predictions of fold {int(ahead[0])} repeat {rate[ahead[0]]:.1%} of its labels, those of the other folds "
            f"{usual:.1%}: that fold was predicted by a model trained on it; {_HOW}"
        )
    return ""
