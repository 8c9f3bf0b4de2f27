"""Several reconstructions fitted together, so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from osler.data.missing.columns import Floats, Plan
from osler.data.missing.design import Design
from osler.data.missing.reconstruct.classical import Iterative, Neighbours, Trees
from osler.data.missing.reconstruct.vae import Autoencoder

METHODS = ("iterative", "trees", "knn", "vae")
SIMPLE = "simple"


class Stack:
    """Reconstructions of the columns `targets`, each by those of `methods` that are asked for it.

    Args:
        plans: what the columns are.
        methods: for each target the methods to fit (names of `METHODS`).
        seed: of everything that is drawn.
    """

    def __init__(self, plans: Sequence[Plan], methods: Mapping[int, Iterable[str]], seed: int) -> None:
        self._plans = plans
        self._methods = {j: tuple(m for m in METHODS if m in set(names)) for j, names in methods.items()}
        self._seed = seed

    def _targets(self, method: str) -> list[int]:
        return [j for j, names in self._methods.items() if method in names]

    def fit(self, codes: Floats) -> Stack:
        """Learn from encoded rows (n, d)."""
        design = Design(self._plans).learn(codes)
        self._fitted: dict[str, Iterative | Trees | Neighbours | Autoencoder] = {}
        self._base: Iterative | None = None
        if self._targets("iterative") or self._targets("trees"):
            self._base = Iterative(design, self._seed).fit(codes, self._targets("iterative"))
            self._fitted["iterative"] = self._base
        if self._base is not None and (targets := self._targets("trees")):
            self._fitted["trees"] = Trees(design, self._seed).fit(codes, targets, self._base.filled_at_fit)
        if targets := self._targets("knn"):
            self._fitted["knn"] = Neighbours(design).fit(codes, targets)
        if targets := self._targets("vae"):
            self._fitted["vae"] = Autoencoder(design, self._seed).fit(codes, targets)
        self._width = design.width
        return self

    def predict(self, codes: Floats) -> dict[int, dict[str, Floats]]:
        """For each target and method the reconstruction of every row.

        (n,) in the column's own units for numbers; (n, categories) probabilities for categories. `simple` (median, mode) is
        always among them.
        """
        out: dict[int, dict[str, Floats]] = {j: {SIMPLE: simple(self._plans[j], len(codes))} for j in self._methods}
        filled = np.empty((len(codes), self._width))
        if self._base is not None:
            filled = self._base.complete(codes)
        for method, fitted in self._fitted.items():
            for j, values in fitted.predict(codes, self._targets(method), filled).items():
                plan = self._plans[j]
                if plan.is_category:
                    out[j][method] = values
                else:
                    # outside what was observed a reconstruction is an extrapolation
                    out[j][method] = (values * plan.spread + plan.centre).clip(plan.low, plan.high)
        return out


def simple(plan: Plan, rows: int) -> Floats:
    """The median, or all probability on the most frequent category."""
    if not plan.is_category:
        return np.full(rows, plan.filler)
    out = np.zeros((rows, min(len(plan.categories), 20)))
    out[:, 0] = 1.0
    return out


def blend(predictions: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """The weighted mean of predictions; weights sum to 1."""
    total = sum(weights[name] * predictions[name] for name in weights)
    return np.asarray(total)
