"""Out-of-fold predictions by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.data.labels.read import plain
from osler.data.need import DataError, need

_FOREST_ROWS = 20_000


def cross_validated_probs(
    X: Any,
    y: Any,
    model: Any = None,
    folds: int = 5,
    groups: Any = None,
    seed: int = 0,
    progress: Progress = quiet,
) -> NDArray[np.float32]:
    """Probabilities of every row by a model that was trained without its fold.

    Args:
        X: N rows of features (array or frame); NaN is allowed with the default model.
        y: N labels; columns of the result are their sorted classes.
        model: any scikit-learn classifier with `predict_proba`; a fresh clone is fitted per fold. None: extremely
            randomised trees up to 20,000 rows, gradient boosting with early stopping above.
        folds: number of folds, at least 2.
        groups: N group ids; a group never stands on both sides of a fold.
        seed: of the shuffling and the default model.
        progress: told how many folds are done.

    Returns:
        N × K float32.

    Raises:
        DataError: scikit-learn is not installed, lengths differ, a class has fewer rows than folds, the model fails.
    """
    base = need("sklearn.base", "data", "cross-validation")
    selection = need("sklearn.model_selection", "data", "cross-validation")
    labels = plain(y, "labels")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows != len(labels):
        raise DataError(f"{rows:,} rows of features and {len(labels):,} labels; they must be of the same rows")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError("all labels are the same; there is nothing to predict")
    if folds < 2:
        raise DataError(f"{folds} folds: at least 2 are needed")
    fewest = int(np.bincount(codes).min())
    if groups is None and fewest < folds:
        raise DataError(f"a class has {fewest} rows, fewer than the {folds} folds; use fewer folds or drop the class")
    estimator = _default(rows, seed) if model is None else model
    if not hasattr(estimator, "predict_proba"):
        raise DataError(f"{type(estimator).__name__} has no predict_proba; give a classifier that has")
    if groups is None:
        splits = selection.StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
    else:
        splits = selection.StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(
            codes, codes, plain(groups, "groups")
        )
    out = np.zeros((rows, len(classes)), dtype=np.float32)
    for done, (train, test) in enumerate(splits):
        progress("cross-validating", done, folds)
        fitted = base.clone(estimator)
        try:
            fitted.fit(_take(X, train), codes[train])
            predicted = fitted.predict_proba(_take(X, test))
        except ValueError as error:
            text = str(error).strip().splitlines()[0]
            raise DataError(f"{type(estimator).__name__} cannot be trained on these features: {text}") from None
        out[np.ix_(test, fitted.classes_)] = predicted
    progress("cross-validating", folds, folds)
    return out


def _take(X: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def _default(rows: int, seed: int) -> Any:
    ensemble = need("sklearn.ensemble", "data", "cross-validation")
    if rows <= _FOREST_ROWS:
        return ensemble.ExtraTreesClassifier(200, min_samples_leaf=2, random_state=seed, n_jobs=1)
    return ensemble.HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
