"""How much a model leans on each feature.

Three ways, all normalised so that the features sum to 1:

- gradients (torch): mean |∂ output / ∂ x_j| × spread of x_j, over rows and outputs;
- permutation (any model): mean |f(x) - f(x with feature j shuffled between rows)|. It needs no label and says what the model
  uses, not whether that helps (Fisher, Rudin & Dominici 2019, arXiv:1801.01489, on permuting as reliance on a feature);
- a quick model (no model, but a label): the rise of the loss on held-out rows when the feature is shuffled (Breiman 2001),
  of boosted trees fitted here; a rise within two standard errors of 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.data.missing.columns import Bools, Floats, encode, learn, read, spread
from osler.data.missing.models import (
    evaluating,
    fit_quick,
    halves,
    is_classes,
    is_torch,
    known_labels,
    losses,
    matrix,
    predictor,
    shuffled,
    take,
    without_holes,
)
from osler.data.need import DataError, need

# Outputs whose gradients are taken one by one; more are summed with random signs.
_OUTPUTS = 16


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How much a model leans on each feature.

    Attributes:
        values: (d,) float64, each at least 0, summing to 1; all 0 where the model leans on none.
        names: the d features.
        method: `gradients`, `permutation`, `model` (a quick model fitted here) or `given`.
    """

    values: Floats
    names: tuple[str, ...]
    method: str

    def above(self, threshold: float, even_share: float) -> Bools:
        """(d,): the features that count as sensitive.

        Args:
            threshold: share of the total from which a feature counts.
            even_share: multiple of an even share 1/d from which it counts too: in wide tables every share is small.
        """
        return (self.values > 0) & (self.values >= min(threshold, even_share / max(len(self.values), 1)))

    def of(self, name: str) -> float:
        """The sensitivity of one feature; 0 for an unknown one."""
        return float(self.values[self.names.index(name)]) if name in self.names else 0.0


def sensitivity(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    method: str = "auto",
    names: Sequence[str] | None = None,
    rows: int = 2_000,
    repeats: int = 3,
    seed: int = 0,
) -> Sensitivity:
    """How much a model leans on each feature of a table.

    Args:
        model: a torch module, an object with `predict_proba` or `predict`, a callable from the table to predictions, or None
            for a quick model of `y`. It is used, never changed: training mode, gradients and random state stay as they were.
        X: (n, d) table as the model takes it: numpy array, pandas or polars frame. Missing numbers are filled with the
            median for gradients; other models get the table as it is, and with medians and modes if they refuse it.
        y: (n,) labels; needed, and only used, where `model` is None.
        method: `gradients`, `permutation`, `model` or `auto` (gradients for torch modules where they exist).
        names: names of the features; otherwise those of the frame, or `x0` … `x(d-1)`.
        rows: at most so many rows, drawn by `seed`, are used.
        repeats: shuffles per feature.
        seed: of the rows and shuffles.

    Raises:
        DataError: the arguments do not fit, or gradients were asked of something that has none.
    """
    if method not in ("auto", "gradients", "permutation", "model"):
        raise DataError(f"method {method!r} is unknown; it is one of auto, gradients, permutation, model")
    if model is None and method in ("gradients", "permutation"):
        raise DataError(f"method {method!r} needs a model")
    random = np.random.default_rng(seed)
    total = _length(X)
    if total < 2:
        raise DataError(f"sensitivity needs at least 2 rows, got {total}")
    if y is not None and len(y) != total:
        raise DataError(f"{total} rows but {len(y)} labels")
    if total > rows:
        chosen = np.sort(random.choice(total, rows, replace=False))
        X, y = take(X, chosen), None if y is None else np.asarray(y)[chosen]
    labels = tuple(names) if names is not None else _names(X)
    if model is None or method == "model":
        if y is None:
            raise DataError("sensitivity needs a model, or labels for a quick model of them")
        return Sensitivity(_normal(_by_quick_model(X, np.asarray(y), repeats, random)), labels, "model")
    if is_torch(model) and method in ("auto", "gradients"):
        try:
            return Sensitivity(_normal(_by_gradients(model, X)), labels, "gradients")
        except (RuntimeError, TypeError, NotImplementedError) as error:
            if method == "gradients":
                raise DataError(f"the model gives no gradient of its output by its input: {_line(error)}") from None
    elif method == "gradients":
        raise DataError("gradients exist for torch modules only; use method='permutation'")
    return Sensitivity(
        _normal(_by_permutation(predictor(model), X, len(labels), repeats, random)), labels, "permutation"
    )


def _by_permutation(
    predict: Callable[[Any], Floats], X: Any, width: int, repeats: int, random: np.random.Generator
) -> Floats:
    try:
        base = predict(X)
    except ValueError:
        filled = without_holes(X)
        if filled is None:
            raise
        X, base = filled, predict(filled)
    text = base.shape[1]
    out = np.zeros(width)
    for j in range(width):
        for _ in range(repeats):
            moved = predict(shuffled(X, j, random.permutation(len(base))))
            if moved.shape[1] != text:
                # a class was never predicted in one of the two
                size = max(text, moved.shape[1])
                moved = np.pad(moved, ((0, 0), (0, size - moved.shape[1])))
                out[j] += np.abs(np.pad(base, ((0, 0), (0, size - text))) - moved).mean()
            else:
                out[j] += float(np.nanmean(np.abs(base - moved))) if base.size else 0.0
    return out


def _by_gradients(model: Any, X: Any) -> Floats:
    torch = need("torch", "torch", "sensitivity by gradients")
    values = matrix(X)
    weight = next(iter(model.parameters()), None)
    device = weight.device if weight is not None else None
    kind = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
    with evaluating(model), torch.inference_mode(False), torch.enable_grad():
        inputs = torch.tensor(values, dtype=kind, device=device, requires_grad=True)
        out = model(inputs)
        if isinstance(out, (tuple, list)):
            out = out[0]
        out = out.reshape(len(values), -1)
        total = torch.zeros(values.shape[1], dtype=torch.float64)
        for signs in _directions(torch, out):
            (slope,) = torch.autograd.grad((out * signs).sum(), inputs, retain_graph=True)
            total += slope.detach().abs().double().mean(0).cpu()
    return np.asarray(total.numpy() * np.array([_scale(column) for column in values.T]))


def _directions(torch: Any, out: Any) -> list[Any]:
    """Each output on its own; of many, random signs over all of them."""
    width = out.shape[1]
    if width <= _OUTPUTS:
        return list(torch.eye(width, dtype=out.dtype, device=out.device))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_OUTPUTS, width))
    return list(torch.tensor(signs, dtype=out.dtype, device=out.device))


def _scale(column: Floats) -> float:
    return 0.0 if np.ptp(column) == 0 else spread(column)


def _by_quick_model(X: Any, y: npt.NDArray[Any], repeats: int, random: np.random.Generator) -> Floats:
    columns = read(X)
    plans = learn(columns)
    codes = encode(columns, plans)
    known = known_labels(y)
    codes, y = codes[known], y[known]
    if len(y) < 20 or len(np.unique(y)) < 2:
        raise DataError(
            f"{len(y)} labelled rows with {len(np.unique(y))} different labels are too few for a quick model"
        )
    rises: list[Floats] = []
    for fit, judge in halves(len(y), random):
        if is_classes(y) and set(np.unique(y[judge])) - set(np.unique(y[fit])):
            judge = judge[np.isin(y[judge], np.unique(y[fit]))]
        if len(judge) < 2 or len(np.unique(y[fit])) < 2:
            continue
        model = fit_quick(codes[fit], y[fit], [p.is_category and len(p.categories) <= 250 for p in plans])
        base = losses(model, codes[judge], y[judge])
        rise = np.zeros((len(judge), codes.shape[1]))
        for j in range(codes.shape[1]):
            for _ in range(repeats):
                moved = codes[judge].copy()
                moved[:, j] = moved[random.permutation(len(judge)), j]
                rise[:, j] += (losses(model, moved, y[judge]) - base) / repeats
        rises.append(rise)
    if not rises:
        raise DataError("the labels are too rare for a quick model: each class needs rows in both halves")
    every = np.concatenate(rises)
    mean, error = every.mean(0), every.std(0) / np.sqrt(len(every))
    return np.where(mean > 2 * error, mean, 0.0)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _names(X: Any) -> tuple[str, ...]:
    if hasattr(X, "columns"):
        return tuple(str(c) for c in X.columns)
    shape = np.shape(X)
    if len(shape) != 2:
        raise DataError(f"expected a 2-dimensional table, got shape {shape}")
    return tuple(f"x{j}" for j in range(shape[1]))


def _normal(values: Floats) -> Floats:
    values = np.nan_to_num(np.maximum(values, 0.0), posinf=0.0)
    total = float(values.sum())
    return values / total if total > 0 else values


def _line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
