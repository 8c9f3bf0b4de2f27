"""Models as the checks use them: asked for predictions, never changed; and a quick model where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.data.missing.columns import Bools, Floats, learn, read, spread
from osler.data.need import DataError, need


def is_torch(model: object) -> bool:
    """Whether it is a torch module, without importing torch."""
    return any(c.__module__.partition(".")[0] == "torch" and c.__name__ == "Module" for c in type(model).__mro__)


def predictor(model: Any) -> Callable[[Any], Floats]:
    """A function from a table to predictions (n, outputs): probabilities where the model has them.

    Raises:
        DataError: the model can be asked for nothing.
    """
    if is_torch(model):
        return lambda X: _torch_predict(model, X)
    for name in ("predict_proba", "predict"):
        function = getattr(model, name, None)
        if callable(function):
            return lambda X: _as_outputs(function(X))
    if callable(model):
        return lambda X: _as_outputs(model(X))
    raise DataError(f"{type(model).__name__} has neither predict nor predict_proba and cannot be called")


def _as_outputs(found: Any) -> Floats:
    if isinstance(found, list):
        # multi-output classifiers of scikit-learn give one array per output
        found = np.concatenate([np.asarray(part).reshape(len(part), -1) for part in found], axis=1)
    out = np.asarray(found)
    if out.dtype.kind not in "fiub":
        # labels as text: their codes would have an order, so each class is its own output
        _, codes = np.unique(out.astype(str), return_inverse=True)
        out = np.eye(int(codes.max()) + 1)[codes.ravel()]
    return np.asarray(out, dtype=np.float64).reshape(len(out), -1)


class evaluating:
    """Every submodule in evaluation mode, and each back in its own mode afterwards."""

    def __init__(self, model: Any) -> None:
        self._modes = [(module, module.training) for module in model.modules()]

    def __enter__(self) -> None:
        # `training` alone, not `eval()`: models override `train()` to have effects
        for module, _ in self._modes:
            module.training = False

    def __exit__(self, *_: object) -> None:
        for module, mode in self._modes:
            module.training = mode


def _torch_predict(model: Any, X: Any) -> Floats:
    torch = need("torch", "torch", "this model")
    weight = next(iter(model.parameters()), None)
    kind = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
    with evaluating(model), torch.no_grad():
        out = model(torch.tensor(matrix(X), dtype=kind, device=weight.device if weight is not None else None))
    out = out[0] if isinstance(out, (tuple, list)) else out
    return _as_outputs(out.detach().float().cpu().numpy())


def halves(n: int, random: np.random.Generator) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Two folds: (rows to fit, rows to judge) and the reverse."""
    order = random.permutation(n)
    a, b = order[: n // 2], order[n // 2 :]
    return [(b, a), (a, b)]


def is_classes(y: npt.NDArray[Any]) -> bool:
    """Whether labels are classes: text, booleans, or at most 20 whole numbers that repeat."""
    if y.dtype.kind not in "fiu":
        return True
    kinds = np.unique(y)
    return len(kinds) <= min(20, len(y) // 5) and bool(np.all(kinds == np.rint(kinds)))


def known_labels(y: npt.NDArray[Any]) -> Bools:
    """(n,): the rows that have a label."""
    if y.dtype.kind == "f":
        return np.asarray(np.isfinite(y))
    if y.dtype == object:
        return np.array([v is not None and v == v for v in y.tolist()], np.bool_)
    return np.ones(len(y), np.bool_)


def quick_model(y: npt.NDArray[Any], categorical: Sequence[bool] | None = None) -> Any:
    """Boosted trees for these labels, unfitted. They take NaN."""
    ensemble = need("sklearn.ensemble", "data", "a quick model")
    kind = ensemble.HistGradientBoostingClassifier if is_classes(y) else ensemble.HistGradientBoostingRegressor
    marked = list(categorical) if categorical is not None and any(categorical) else None
    return kind(
        max_iter=60,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        early_stopping=False,
        random_state=0,
        categorical_features=marked,
    )


def fit_quick(X: Floats, y: npt.NDArray[Any], categorical: Sequence[bool]) -> Any:
    """Boosted trees fitted on encoded rows (n, d) with NaN. A column without any value says nothing and is taken as 0."""
    empty = np.isnan(X).all(0)
    return quick_model(y, categorical).fit(np.where(empty, 0.0, X), y)


def losses(model: Any, X: Any, y: npt.NDArray[Any]) -> Floats:
    """(n,): log loss of the true class, or squared error in squared spreads of `y`."""
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X), dtype=np.float64)
        place = {c: k for k, c in enumerate(np.asarray(model.classes_).tolist())}
        column = np.array([place.get(v, -1) for v in y.tolist()])
        chance = np.where(column >= 0, found[np.arange(len(y)), column], 0.0)
        return -np.log(np.maximum(chance, 1e-6))
    error = np.asarray(model.predict(X), dtype=np.float64).reshape(len(y), -1)[:, 0] - y.astype(np.float64)
    return np.square(error / spread(y.astype(np.float64)))


def matrix(X: Any) -> Floats:
    """(n, d) float64 of a table of numbers, missing values filled with the column's median.

    Raises:
        DataError: a column is not numbers.
    """
    columns = read(X)
    for column in columns:
        if column.is_category:
            raise DataError(f"column {column.name!r} is not numbers, which this model takes; leave it out or encode it")
    out = np.stack([column.values for column in columns], axis=1)
    for j in range(out.shape[1]):
        gone = ~np.isfinite(out[:, j])
        if gone.any():
            out[gone, j] = 0.0 if gone.all() else np.median(out[~gone, j])
    return out


def without_holes(X: Any) -> Any:
    """A copy with medians and most frequent values in the holes; None where the table has none."""
    columns = read(X)
    if not any(c.missing.any() for c in columns):
        return None
    plans = learn(columns)
    if hasattr(X, "iloc"):
        copy = X.copy()
        for j, (column, plan) in enumerate(zip(columns, plans)):
            if column.missing.any() and plan.observed:
                copy.isetitem(j, X.iloc[:, j].fillna(plan.categories[0] if plan.is_category else plan.filler))
        return copy
    if hasattr(X, "get_columns"):
        done = []
        for series, plan in zip(X.get_columns(), plans):
            plain = series if plan.is_category or not series.dtype.is_float() else series.fill_nan(None)
            done.append(
                plain.fill_null(plan.categories[0] if plan.is_category else plan.filler) if plan.observed else series
            )
        return X.with_columns(done)
    out = np.array(X)
    for j, (column, plan) in enumerate(zip(columns, plans)):
        out[column.missing, j] = plan.categories[0] if plan.is_category else plan.filler
    return out


def shuffled(X: Any, column: int, order: npt.NDArray[np.int64]) -> Any:
    """A copy of the table in which one column stands in another order."""
    if hasattr(X, "iloc"):
        copy = X.copy()
        copy.isetitem(column, X.iloc[order, column].array)
        return copy
    if hasattr(X, "get_columns"):
        series = X.get_columns()[column]
        return X.with_columns(series.gather(order).alias(series.name))
    out = np.array(X)
    out[:, column] = out[order, column]
    return out


def take(X: Any, rows: npt.NDArray[np.int64]) -> Any:
    """Rows of a table, in the same kind of table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "get_columns"):
        return X[rows]
    if hasattr(X, "column_names"):
        return X.take(rows)
    return np.asarray(X)[rows]
