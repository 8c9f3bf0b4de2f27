"""Encoded rows with holes in, encoded rows without holes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.progress import Progress, quiet
from osler.core.settings.missing import Missing
from osler.data.missing.columns import Bools, Floats, Plan
from osler.data.missing.reconstruct.stack import METHODS, SIMPLE, Stack, blend
from osler.data.missing.validate import Choice, choose


class Filler:
    """Reconstructs some columns from the others, and fills the rest with the median or the most frequent category.

    Args:
        plans: what the columns are.
        targets: the columns to reconstruct.
        methods: candidates; see `METHODS`.
        seed: of rows, masks and methods.
        settings: how much is hidden for the comparison, and how many rows are learned from.
        max_rows: in place of the setting `fit_rows`.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        targets: Sequence[int],
        methods: Sequence[str],
        seed: int,
        settings: Missing,
        max_rows: int | None = None,
    ) -> None:
        self._plans = plans
        self._targets = list(targets)
        self._methods = list(methods)
        self._seed = seed
        self._settings = settings
        self._max_rows = settings.fit_rows if max_rows is None else max_rows
        self.choices: dict[int, Choice] = {}
        self._stack: Stack | None = None

    def fit(self, codes: Floats, progress: Progress = quiet) -> Filler:
        """Choose a reconstruction for each target on encoded rows (n, d), and fit it."""
        if len(codes) > self._max_rows:
            random = np.random.default_rng(self._seed)
            codes = codes[np.sort(random.choice(len(codes), self._max_rows, replace=False))]
        s = self._settings
        if len(codes) < s.min_rows or len(self._plans) < 2:
            self.choices = {j: Choice({SIMPLE: 1.0}) for j in self._targets}
        else:
            self.choices = choose(
                codes,
                self._plans,
                self._targets,
                self._methods,
                seed=self._seed,
                share=s.mask_share,
                folds=s.mask_folds,
                min_cells=s.min_cells,
                progress=progress,
            )
        wanted = {j: [m for m in c.weights if m != SIMPLE] for j, c in self.choices.items()}
        wanted = {j: names for j, names in wanted.items() if names}
        self._stack = Stack(self._plans, wanted, self._seed).fit(codes) if wanted else None
        return self

    def fill(self, codes: Floats, gone: Bools | None = None) -> Floats:
        """A copy of encoded rows (n, d) without holes.

        Args:
            codes: encoded rows.
            gone: (n, d), the cells to fill; otherwise those that are NaN.
        """
        gone = np.isnan(codes) if gone is None else gone
        out: Floats = codes.copy()
        for j, plan in enumerate(self._plans):
            out[gone[:, j], j] = plan.filler
        if self._stack is None:
            return out
        targets = [j for j, c in self.choices.items() if set(c.weights) != {SIMPLE}]
        # of a row without any value there is nothing to reconstruct from
        rows = np.flatnonzero(gone[:, targets].any(1) & ~gone.all(1))
        if not len(rows):
            return out
        for j, predictions in self._stack.predict(codes[rows]).items():
            at = gone[rows, j]
            mixed = blend({m: v[at] for m, v in predictions.items()}, self.choices[j].weights)
            plan = self._plans[j]
            if plan.is_category:
                out[rows[at], j] = mixed.argmax(1)
            else:
                out[rows[at], j] = np.rint(mixed) if plan.integer else mixed
        return out


def fill_simply(codes: Floats, plans: Sequence[Plan]) -> Floats:
    """A copy with the mean of the numbers and the most frequent category in the holes: what pipelines do by default."""
    out: Floats = codes.copy()
    for j, plan in enumerate(plans):
        out[np.isnan(codes[:, j]), j] = plan.filler if plan.is_category else plan.centre
    return out


def decode(codes: npt.NDArray[np.float64], plan: Plan) -> npt.NDArray[Any]:
    """One encoded column (n,) as its own values: floats, or objects with None where the code is NaN."""
    if not plan.is_category:
        return codes
    out = np.empty(len(codes), dtype=object)
    for i, code in enumerate(codes.tolist()):
        out[i] = None if code != code else plan.categories[int(code)]
    return out


def installed_methods(names: Sequence[str] = METHODS) -> list[str]:
    """The reconstructions that can be used here: `vae` needs torch."""
    from importlib.util import find_spec

    return [name for name in names if name != "vae" or find_spec("torch") is not None]
