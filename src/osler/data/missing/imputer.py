"""An imputer that spends its effort where the model looks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Bools, Floats, Plan, Raw, encode, learn, read
from osler.data.missing.fill import Filler, decode, installed_methods
from osler.data.missing.reconstruct.stack import METHODS
from osler.data.missing.sensitivity import Sensitivity, sensitivity
from osler.data.need import DataError, need

need("sklearn", "data", "SensitivityImputer")

from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

_DEFAULT = Missing()


class SensitivityImputer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fills missing values: with care where a model leans on the feature, with the median or the mode elsewhere.

    Features whose sensitivity lies above the threshold are reconstructed from the other features of the row. Candidates are
    iterated ridge regression, extremely randomised trees, nearest neighbours and, where torch is installed, a small
    variational autoencoder (MIWAE). Which of them, or which mean of them, is used is decided for each feature by hiding
    observed cells of the fitted rows and comparing the reconstructions; `choices_` says what was chosen and how large its
    error was. Whether values are missing for reasons that the table does not show (MNAR) cannot be known from the table: the
    errors hold for cells that are missing at random.

    Args:
        sensitivity: a `Sensitivity`, (d,) numbers, or a mapping of names to numbers; takes precedence over `model`.
        model: a fitted model to ask, see `osler.data.missing.sensitivity`. `sklearn.base.clone` unfits an estimator given
            here: wrap it in `sklearn.frozen.FrozenEstimator`, or hand over `sensitivity`.
        threshold: share of the total sensitivity from which a feature is reconstructed.
        even_share: multiple of an even share 1/d from which a feature is reconstructed too, for wide tables.
        methods: candidates, from `iterative`, `trees`, `knn`, `vae`; `auto` takes all that are installed.
        max_rows: rows, drawn at random, that the reconstructions learn from.
        add_indicator: append a column of 0 and 1 for each column that had missing values at fit.
        random_state: seed; the same seed gives the same values.

    Without `sensitivity`, `model` and labels in `fit`, every feature counts as sensitive.

    Attributes:
        sensitivity_: `Sensitivity` or None where there was nothing to ask.
        sensitive_: (d,) bool, the reconstructed features.
        choices_: feature → `Choice` for the reconstructed features.
        statistics_: (d,) object: median or most frequent category; what the other features are filled with.
        n_features_in_, feature_names_in_: as in scikit-learn.

    A column that was wholly missing at fit is kept, filled with 0, and warned about. Values that were never seen at fit
    (new categories) are kept. Numbers of integer columns stay whole. Reconstructed numbers stay within the range seen at
    fit. Arrays come back as float arrays, frames with category columns as frames of the same kind.
    """

    def __init__(
        self,
        *,
        sensitivity: Any = None,
        model: Any = None,
        threshold: float = _DEFAULT.sensitivity,
        even_share: float = _DEFAULT.even_share,
        methods: str | Sequence[str] = "auto",
        max_rows: int = _DEFAULT.fit_rows,
        add_indicator: bool = False,
        random_state: int = 0,
    ) -> None:
        self.sensitivity = sensitivity
        self.model = model
        self.threshold = threshold
        self.even_share = even_share
        self.methods = methods
        self.max_rows = max_rows
        self.add_indicator = add_indicator
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> SensitivityImputer:
        """Learn from the training rows.

        Args:
            X: (n, d) numbers and categories: numpy array, pandas, polars or pyarrow table.
            y: (n,) labels; asked only which features matter for them, and only where neither `sensitivity` nor `model` is
                given. They do not enter the values filled in.

        Raises:
            DataError: a column is neither numbers nor categories, or an argument makes no sense.
        """
        methods = self._methods()
        X, columns = self._read(X, reset=True)
        plans = learn(columns)
        codes = encode(columns, plans)
        self._plans = plans
        self._had_missing = np.array([bool(c.missing.any()) for c in columns])
        self.sensitivity_ = self._ask(X, y, columns)
        self.sensitive_ = self._sensitive(plans)
        self.statistics_ = np.array([_filler(p) for p in plans], dtype=object)
        empty = [p.name for p in plans if not p.observed]
        if empty:
            warnings.warn(
                f"no value was observed in column{'s' * (len(empty) > 1)} {', '.join(map(repr, empty))}: filled with 0",
                stacklevel=2,
            )
        targets = [int(j) for j in np.flatnonzero(self.sensitive_)]
        seed = int(self.random_state)
        self._filler = Filler(plans, targets, methods, seed, _DEFAULT, self.max_rows).fit(codes)
        self.choices_ = {plans[j].name: choice for j, choice in self._filler.choices.items()}
        return self

    def transform(self, X: Any) -> Any:
        """A copy of the table with its missing values filled in.

        Raises:
            DataError: a column holds other kinds of values than at fit.
        """
        check_is_fitted(self)
        X, columns = self._read(X, reset=False)
        missing = np.stack([column.missing for column in columns], axis=1)
        done = self._filler.fill(encode(columns, self._plans), missing)
        filled = [_merged(c, p, done[:, j], missing[:, j]) for j, (c, p) in enumerate(zip(columns, self._plans))]
        return self._output(X, filled, columns)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns that `transform` gives."""
        from sklearn.utils.validation import _check_feature_names_in

        check_is_fitted(self)
        names = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        if self.add_indicator:
            marks = [f"missing_{name}" for name, had in zip(names, self._had_missing) if had]
            names = np.concatenate([names, np.array(marks, dtype=object)])
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _methods(self) -> list[str]:
        if not 0 < self.threshold <= 1:
            raise DataError(
                f"threshold is {self.threshold}; it is a share of the total sensitivity, above 0 and at most 1"
            )
        if self.methods == "auto":
            return installed_methods()
        names = [self.methods] if isinstance(self.methods, str) else list(self.methods)
        for name in names:
            if name not in METHODS:
                raise DataError(f"method {name!r} is unknown; it is one of {', '.join(METHODS)}, or 'auto'")
        return names

    def _read(self, X: Any, *, reset: bool) -> tuple[Any, list[Raw]]:
        module = type(X).__module__.partition(".")[0]
        if module in ("pandas", "polars", "pyarrow") and hasattr(X, "shape") and len(X.shape) == 2:
            validate_data(self, X, reset=reset, skip_check_array=True)
        else:
            kind = np.asarray(X).dtype if not hasattr(X, "toarray") else np.dtype(np.float64)
            X = validate_data(
                self,
                X,
                reset=reset,
                dtype=object if kind.kind in "OUS" else [np.float64, np.float32],
                ensure_all_finite=False if kind.kind in "OUS" else "allow-nan",
            )
        columns = read(X)
        for column in columns:
            if not column.is_category and np.isinf(column.values).any():
                raise DataError(
                    f"column {column.name!r} holds infinity, which cannot be imputed; replace it with NaN first"
                )
        if reset and (not columns or not len(columns[0].values)):
            raise DataError("there is nothing to learn from: the table has no rows or no columns")
        return X, columns

    def _ask(self, X: Any, y: Any, columns: Sequence[Raw]) -> Sensitivity | None:
        names = tuple(c.name for c in columns)
        given = self.sensitivity
        if isinstance(given, Sensitivity):
            values = np.array([given.of(n) for n in names]) if set(names) <= set(given.names) else given.values
        elif isinstance(given, dict):
            unknown = [str(n) for n in given if n not in names]
            if unknown:
                raise DataError(f"sensitivity names column {unknown[0]!r}, which the table does not have")
            values = np.array([float(given.get(n, 0.0)) for n in names])
        elif given is not None:
            values = np.asarray(given, dtype=np.float64)
        elif self.model is not None:
            return sensitivity(self.model, X, names=names, seed=int(self.random_state))
        elif y is not None:
            try:
                return sensitivity(None, X, np.asarray(y), names=names, seed=int(self.random_state))
            except DataError:
                # too few rows or a single label: nothing can be learned about what matters
                return None
        else:
            return None
        if values.shape != (len(names),) or not np.all(np.isfinite(values)) or values.min() < 0 or values.sum() <= 0:
            raise DataError(
                f"sensitivity must be {len(names)} finite numbers of at least 0, one for each column, not all 0"
            )
        return Sensitivity(values / values.sum(), names, "given")

    def _sensitive(self, plans: Sequence[Plan]) -> Bools:
        observed = np.array([p.observed > 0 for p in plans])
        if self.sensitivity_ is None:
            return observed
        return observed & self.sensitivity_.above(self.threshold, self.even_share)

    def _output(self, X: Any, filled: list[npt.NDArray[Any]], columns: Sequence[Raw]) -> Any:
        marks = [
            c.missing.astype(np.float64) for c, had in zip(columns, self._had_missing) if had and self.add_indicator
        ]
        names = [str(n) for n in self.get_feature_names_out()]
        parts = [*filled, *marks]
        mixed = any(p.is_category for p in self._plans)
        module = type(X).__module__.partition(".")[0]
        if mixed and module in ("pandas", "polars", "pyarrow"):
            return _frame(X, names, parts, [p.integer for p in self._plans] + [True] * len(marks))
        if mixed:
            out = np.empty((len(parts[0]), len(parts)), dtype=object)
            for j, part in enumerate(parts):
                out[:, j] = part
            return out
        kind = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        return np.stack([p.astype(kind) for p in parts], axis=1) if parts else np.empty((0, 0), dtype=kind)


def _filler(plan: Plan) -> Any:
    return plan.categories[0] if plan.is_category else plan.filler


def _merged(column: Raw, plan: Plan, codes: Floats, missing: Bools) -> npt.NDArray[Any]:
    """The column with filled values where it was missing; what was there stays, unknown categories included."""
    if not plan.is_category:
        return codes
    out = decode(np.where(missing, codes, np.nan), plan)
    if column.is_category:
        out[~missing] = column.values[~missing]
    return out


def _frame(X: Any, names: Sequence[str], parts: Sequence[npt.NDArray[Any]], whole: Sequence[bool]) -> Any:
    """A frame like `X` of these columns; integer and category types are kept where the filled values allow it."""
    data = {n: v.astype(np.int64) if w and v.dtype.kind == "f" else v for n, v, w in zip(names, parts, whole)}
    module = type(X).__module__.partition(".")[0]
    if module == "pandas":
        import pandas as pd

        out = pd.DataFrame(data, index=X.index)
        for name, kind in zip(names, X.dtypes):
            if getattr(kind, "name", "") == "category":
                out[name] = out[name].astype("category")
        return out
    if module == "polars":
        import polars as pl

        series = [pl.Series(n, v.tolist(), strict=False) for n, v in data.items()]
        old = {s.name: s.dtype for s in X.get_columns()}
        return pl.DataFrame(
            [s.cast(old[s.name]) if str(old.get(s.name)) in ("Categorical", "String") else s for s in series]
        )
    import pyarrow as pa

    return pa.table({n: pa.array(v.tolist()) for n, v in data.items()})
