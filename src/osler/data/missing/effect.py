"""What missing values cost the task: the loss with the mean filled in, with the reconstruction, and with the true values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Floats, Plan
from osler.data.missing.fill import Filler, fill_simply
from osler.data.missing.models import fit_quick, halves, is_classes, losses


@dataclass(frozen=True, slots=True)
class Effect:
    """Losses on rows in which cells of the sensitive features were hidden.

    Attributes:
        true: mean loss with the true values.
        mean: mean loss with the mean (or most frequent category) filled in.
        proposed: mean loss with the reconstruction filled in.
        gain: mean - proposed, over the same rows.
        error: standard error of `gain`.
        rows: how many.
        unit: what the loss is.
    """

    true: float
    mean: float
    proposed: float
    gain: float
    error: float
    rows: int
    unit: str

    def matters(self, settings: Missing) -> bool:
        """Whether the mean costs clearly more than the reconstruction, and more than a little."""
        return self.gain > settings.effect_z * self.error and self.gain > settings.effect * max(self.mean, 1e-12)


def by_quick_model(
    codes: Floats,
    plans: Sequence[Plan],
    y: npt.NDArray[Any],
    shares: Mapping[int, float],
    methods: Sequence[str],
    settings: Missing,
    seed: int = 0,
) -> Effect | None:
    """The effect on boosted trees; two folds. Holes that the rows have already are filled in in the same way for training.

    Args:
        codes: (n, d) encoded rows.
        plans: what the columns are.
        y: (n,) labels, none missing.
        shares: column → share of its cells to hide.
        methods: candidates for the reconstruction.

    Returns:
        None where there are too few rows.
    """
    random = np.random.default_rng(seed)
    parts: list[Floats] = []
    for fit, judge in halves(len(y), random):
        if len(np.unique(y[fit])) < 2 or len(judge) < settings.min_rows:
            return None
        train, test = codes[fit], _hide(codes[judge], shares, random)
        filler = Filler(plans, list(shares), methods, seed, settings).fit(train)
        marked = [p.is_category and len(p.categories) <= 250 for p in plans]
        ours = fit_quick(filler.fill(train), y[fit], marked)
        theirs = fit_quick(fill_simply(train, plans), y[fit], marked)
        hit = np.flatnonzero((np.isnan(test) & ~np.isnan(codes[judge])).any(1))
        if is_classes(y):
            hit = hit[np.isin(y[judge][hit], ours.classes_)]
        if not len(hit):
            continue
        wanted = y[judge][hit]
        parts.append(
            np.stack(
                [
                    losses(ours, filler.fill(codes[judge][hit]), wanted),
                    losses(theirs, fill_simply(test[hit], plans), wanted),
                    losses(ours, filler.fill(test[hit]), wanted),
                ]
            )
        )
    unit = "log loss" if is_classes(y) else "squared error in squared spreads of the label"
    return _effect(parts, settings, unit)


def by_model(
    predict: Callable[[Floats], Floats],
    codes: Floats,
    plans: Sequence[Plan],
    shares: Mapping[int, float],
    methods: Sequence[str],
    settings: Missing,
    seed: int = 0,
) -> Effect | None:
    """The effect on a given model: how far its predictions move from those on the true values.

    Args:
        predict: from encoded rows to predictions (n, outputs).

    Returns:
        The loss is the mean absolute change of a prediction; None where there are too few rows.
    """
    random = np.random.default_rng(seed)
    parts: list[Floats] = []
    for fit, judge in halves(len(codes), random):
        if len(judge) < settings.min_rows:
            return None
        filler = Filler(plans, list(shares), methods, seed, settings).fit(codes[fit])
        test = _hide(codes[judge], shares, random)
        hit = np.flatnonzero((np.isnan(test) & ~np.isnan(codes[judge])).any(1))
        if not len(hit):
            continue
        # cells that were missing before are filled alike on all sides
        base = filler.fill(codes[judge][hit])
        hidden = np.isnan(test[hit]) & ~np.isnan(codes[judge][hit])
        true = predict(base)
        changes = [
            np.abs(predict(np.where(hidden, filled, base)) - true).mean(1)
            for filled in (fill_simply(test[hit], plans), filler.fill(test[hit]))
        ]
        parts.append(np.stack([np.zeros(len(hit)), *changes]))
    return _effect(parts, settings, "change of the prediction")


def _effect(parts: Sequence[Floats], settings: Missing, unit: str) -> Effect | None:
    if not parts:
        return None
    every = np.concatenate(parts, axis=1)
    rows = every.shape[1]
    if rows < settings.min_cells:
        return None
    gain = every[1] - every[2]
    true, mean, proposed = (float(v) for v in every.mean(1))
    return Effect(true, mean, proposed, float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(rows)), rows, unit)


def _hide(codes: Floats, shares: Mapping[int, float], random: np.random.Generator) -> Floats:
    """A copy with further cells hidden; at least one in ten of a column, so that there is something to judge."""
    out: Floats = codes.copy()
    for j, share in shares.items():
        out[random.random(len(out)) < min(0.5, max(0.1, share)), j] = np.nan
    return out
