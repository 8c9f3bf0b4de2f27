"""Which reconstruction is best for a column: observed cells are hidden, reconstructed and compared.

The masks are drawn completely at random. Where values are missing for a reason (MAR, MNAR), the error on the cells that are
really missing can be larger; no method can know it from the data alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.core.progress import Progress, quiet
from osler.data.missing.columns import Floats, Plan
from osler.data.missing.reconstruct.stack import SIMPLE, Stack, blend

# Rounds of greedy selection: weights come in twelfths.
_ROUNDS = 12
# A method with so many times the best one's loss after the first fold is not fitted again: its weight would be 0 or small.
_FAR = 1.5


@dataclass(frozen=True, slots=True)
class Choice:
    """How a column is reconstructed, and how well that did on hidden cells.

    Attributes:
        weights: method → weight, summing to 1; `simple` is the median or the most frequent category.
        error: mean absolute error in spreads (standard deviations of the observed values) for numbers, share of wrong
            categories otherwise; of a mixture, with weights chosen on one half of the hidden cells and judged on the other.
            NaN where nothing could be hidden.
        errors: the same of every method on its own.
        cells: hidden cells that were judged.
    """

    weights: dict[str, float]
    error: float = float("nan")
    errors: dict[str, float] = field(default_factory=dict)
    cells: int = 0

    @property
    def label(self) -> str:
        """The methods with their weights, the largest first."""
        parts = sorted(self.weights.items(), key=lambda item: (-item[1], item[0]))
        return parts[0][0] if len(parts) == 1 else " + ".join(f"{weight:.2f} {name}" for name, weight in parts)


def choose(
    codes: Floats,
    plans: Sequence[Plan],
    targets: Sequence[int],
    methods: Iterable[str],
    *,
    seed: int,
    share: float,
    folds: int,
    min_cells: int,
    progress: Progress = quiet,
) -> dict[int, Choice]:
    """The reconstruction of each target column.

    Args:
        codes: (n, d) encoded rows.
        plans: what the columns are.
        targets: columns to reconstruct.
        methods: names of the candidates.
        seed: of the masks and of the methods.
        share: share of each target's observed cells that is hidden in each fold.
        folds: how often.
        min_cells: with fewer hidden cells in all, `simple` is taken without a comparison.
    """
    random = np.random.default_rng(seed)
    asked = {j: list(methods) for j in targets}
    truth: dict[int, list[Floats]] = {j: [] for j in targets}
    found: dict[int, dict[str, list[Floats]]] = {j: {} for j in targets}
    for fold in range(folds):
        progress("comparing reconstructions", fold, folds)
        hidden = np.zeros(codes.shape, np.bool_)
        for j in targets:
            observed = np.flatnonzero(~np.isnan(codes[:, j]))
            hidden[random.permutation(observed)[: int(len(observed) * share)], j] = True
        masked = np.where(hidden, np.nan, codes)
        rows = np.flatnonzero(hidden.any(1))
        if not len(rows):
            break
        predicted = Stack(plans, asked, seed + fold).fit(masked).predict(masked[rows])
        for j in targets:
            chosen = hidden[rows, j]
            truth[j].append(codes[rows[chosen], j])
            for name, values in predicted[j].items():
                found[j].setdefault(name, []).append(values[chosen])
            asked[j] = _worth_a_second_look(plans[j], truth[j][-1], found[j], asked[j])
    progress("comparing reconstructions", folds, folds)
    out = {}
    for j in targets:
        true = np.concatenate(truth[j]) if truth[j] else np.empty(0)
        if len(true) < min_cells:
            out[j] = Choice({SIMPLE: 1.0}, cells=len(true))
        else:
            judged = {name: np.concatenate(p) for name, p in found[j].items() if len(p) == len(truth[j])}
            out[j] = _choice(plans[j], true, judged, random)
    return out


def _worth_a_second_look(
    plan: Plan, true: Floats, found: Mapping[str, list[Floats]], asked: Sequence[str]
) -> list[str]:
    """The methods whose error on the last fold is not far above the best one's; iterated ridge stays as the yardstick."""
    if not len(true):
        return list(asked)
    losses = {name: _loss(plan, true, parts[-1]) for name, parts in found.items() if name in asked}
    limit = _FAR * min(losses.values(), default=0.0)
    return [name for name in asked if name == "iterative" or losses[name] <= limit]


def _choice(plan: Plan, true: Floats, predictions: Mapping[str, Floats], random: np.random.Generator) -> Choice:
    errors = {name: error(plan, true, values) for name, values in predictions.items()}
    order = random.permutation(len(true))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    judged = []
    for fit, judge in (halves, halves[::-1]):
        weights = _select(plan, true[fit], {name: values[fit] for name, values in predictions.items()})
        judged.append(error(plan, true[judge], blend({n: v[judge] for n, v in predictions.items()}, weights)))
    best = min(errors, key=lambda name: (errors[name], name != SIMPLE, name))
    if float(np.mean(judged)) >= errors[best]:
        # the mixture does not hold on cells that it was not chosen on
        return Choice({best: 1.0}, errors[best], errors, len(true))
    return Choice(_select(plan, true, predictions), float(np.mean(judged)), errors, len(true))


def _select(plan: Plan, true: Floats, predictions: Mapping[str, Floats]) -> dict[str, float]:
    """Greedy ensemble selection with replacement (Caruana et al. 2004, "Ensemble selection from libraries of models")."""
    names = sorted(predictions, key=lambda name: (_loss(plan, true, predictions[name]), name))
    picked = [names[0]]
    total = predictions[names[0]].copy()
    best_count, best_loss = 1, _loss(plan, true, total)
    for count in range(2, _ROUNDS + 1):
        losses = [_loss(plan, true, (total + predictions[name]) / count) for name in names]
        k = int(np.argmin(losses))
        picked.append(names[k])
        total = total + predictions[names[k]]
        if losses[k] < best_loss:
            best_count, best_loss = count, losses[k]
    kept = picked[:best_count]
    return {name: kept.count(name) / best_count for name in names if name in kept}


def _loss(plan: Plan, true: Floats, predicted: Floats) -> float:
    """What selection minimises: absolute error, or for categories the Brier score, which is smoother than mistakes."""
    if not plan.is_category:
        return float(np.abs(predicted - true).mean())
    wanted = np.zeros_like(predicted)
    known = true < predicted.shape[1]
    wanted[np.flatnonzero(known), true[known].astype(np.int64)] = 1.0
    return float(np.square(predicted - wanted).sum(1).mean())


def error(plan: Plan, true: Floats, predicted: Floats) -> float:
    """Mean absolute error in spreads, or the share of wrong categories."""
    if plan.is_category:
        return float((predicted.argmax(1) != true).mean())
    return float(np.abs(predicted - true).mean() / plan.spread)
