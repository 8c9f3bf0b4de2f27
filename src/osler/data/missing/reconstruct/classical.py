"""Reconstructions by scikit-learn: iterated ridge, trees on top of it, nearest neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from osler.data.missing.columns import Floats
from osler.data.missing.design import Design

_NEIGHBOURS = 10
_TREES = 60
# Beyond this many columns each ridge looks at the most correlated ones only, as IterativeImputer's guide proposes.
_NEAREST = 100


class Iterative:
    """Round-robin Bayesian ridge over all number columns (van Buuren & Groothuis-Oudshoorn 2011, MICE; as implemented by
    scikit-learn's IterativeImputer); logistic regression on the completed rows for categories."""

    name = "iterative"

    def __init__(self, design: Design, seed: int) -> None:
        self._design = design
        self._seed = seed

    def fit(self, codes: Floats, targets: Sequence[int]) -> Iterative:
        """Learn from encoded rows (n, d) how to reconstruct the columns `targets`."""
        # the import registers IterativeImputer, which scikit-learn still calls experimental
        from sklearn.experimental import enable_iterative_imputer  # noqa: F401
        from sklearn.impute import IterativeImputer

        matrix = self._design.matrix(codes)
        numbers = len(self._design.numeric)
        self._imputer: Any = None
        if numbers and matrix.shape[1] > 1:
            nearest = _NEAREST if matrix.shape[1] > _NEAREST else None
            self._imputer = IterativeImputer(random_state=self._seed, n_nearest_features=nearest)
            with warnings.catch_warnings():
                # ten rounds are its default; stopping there is judged by the masked error, not by its tolerance
                warnings.simplefilter("ignore")
                filled = self._imputer.fit_transform(matrix)
        else:
            filled = np.nan_to_num(matrix)
        self.filled_at_fit = filled
        self._classifiers = {j: self._classifier(codes[:, j], filled, j) for j in targets if j in self._design.blocks}
        return self

    def _classifier(self, code: Floats, filled: Floats, column: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        known = ~np.isnan(code)
        if len(np.unique(code[known])) < 2:
            return None
        model = LogisticRegression(max_iter=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(filled[known][:, self._design.without(column)], code[known])

    def complete(self, codes: Floats) -> Floats:
        """(n, width): the design matrix without NaN."""
        matrix = self._design.matrix(codes)
        if self._imputer is None:
            return np.nan_to_num(matrix)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self._imputer.transform(matrix))

    def predict(self, codes: Floats, targets: Sequence[int], filled: Floats) -> dict[int, Floats]:
        """For each target its reconstruction of every row: (n,) in the units of the design for numbers, (n, categories)
        probabilities for categories."""
        out = {}
        for j in targets:
            if j in self._design.blocks:
                out[j] = probabilities(self._classifiers[j], filled[:, self._design.without(j)], self._design, j)
            else:
                out[j] = filled[:, self._design.place[j]]
        return out


class Trees:
    """One forest of extremely randomised trees per target on the rows completed by `Iterative` (after missForest, Stekhoven
    & Bühlmann 2012, with one round)."""

    name = "trees"

    def __init__(self, design: Design, seed: int) -> None:
        self._design = design
        self._seed = seed

    def fit(self, codes: Floats, targets: Sequence[int], filled: Floats) -> Trees:
        """Learn from encoded rows (n, d) and their completed design matrix."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        self._models: dict[int, Any] = {}
        for j in targets:
            known = ~np.isnan(codes[:, j])
            inputs = filled[known][:, self._design.without(j)]
            if not inputs.shape[1]:
                self._models[j] = None
            elif j in self._design.blocks:
                model = ExtraTreesClassifier(_TREES, min_samples_leaf=2, random_state=self._seed)
                self._models[j] = model.fit(inputs, codes[known, j])
            else:
                plan = self._design.plans[j]
                model = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=self._seed, max_features=0.7)
                self._models[j] = model.fit(inputs, (codes[known, j] - plan.centre) / plan.spread)
        return self

    def predict(self, codes: Floats, targets: Sequence[int], filled: Floats) -> dict[int, Floats]:
        """As `Iterative.predict`."""
        out = {}
        for j in targets:
            inputs = filled[:, self._design.without(j)]
            if j in self._design.blocks:
                out[j] = probabilities(self._models[j], inputs, self._design, j)
            elif self._models[j] is None:
                out[j] = np.zeros(len(filled))
            else:
                out[j] = np.asarray(self._models[j].predict(inputs))
        return out


class Neighbours:
    """The ten nearest rows by the columns that both have, weighted by distance (Troyanskaya et al. 2001, as implemented by
    scikit-learn's KNNImputer)."""

    name = "knn"

    def __init__(self, design: Design) -> None:
        self._design = design

    def fit(self, codes: Floats, targets: Sequence[int]) -> Neighbours:
        """Keep the encoded rows (n, d)."""
        from sklearn.impute import KNNImputer

        # the one-hot block of a category target is hidden in turn, so its columns are imputed like numbers
        self._imputer = KNNImputer(n_neighbors=_NEIGHBOURS, weights="distance", keep_empty_features=True)
        self._imputer.fit(self._hide(codes))
        return self

    def _hide(self, codes: Floats) -> Floats:
        matrix = self._design.matrix(codes)
        for j, block in self._design.blocks.items():
            matrix[np.isnan(codes[:, j]), block] = np.nan
        return matrix

    def predict(self, codes: Floats, targets: Sequence[int], filled: Floats) -> dict[int, Floats]:
        """As `Iterative.predict`."""
        done = np.asarray(self._imputer.transform(self._hide(codes)))
        out: dict[int, Floats] = {}
        for j in targets:
            if j in self._design.blocks:
                share = done[:, self._design.blocks[j]].clip(0)
                out[j] = share / np.maximum(share.sum(1, keepdims=True), 1e-12)
            else:
                out[j] = done[:, self._design.place[j]]
        return out


def probabilities(model: Any, inputs: Floats, design: Design, column: int) -> Floats:
    """(n, categories of the block) from a classifier of codes; all on the most frequent where there is no classifier."""
    size = design.blocks[column].stop - design.blocks[column].start
    out = np.zeros((len(inputs), size))
    if model is None:
        out[:, 0] = 1.0
        return out
    found = model.predict_proba(inputs)
    for k, code in enumerate(model.classes_):
        if code < size:
            out[:, int(code)] = found[:, k]
    return out
