"""A table of numbers and categories as one float64 matrix: numbers as they are, categories as codes, NaN where missing."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.data.need import DataError

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Plan:
    """What one column was when it was learned.

    Attributes:
        name: its name, `x3` where the table had none.
        categories: the values of a category column, the most frequent first (ties by their text); empty for numbers.
        integer: the column's type holds whole numbers only, so reconstructed values are rounded.
        low, high: range of the observed numbers; 0 for categories and where nothing was observed.
        centre: mean of the observed numbers.
        spread: standard deviation of the observed numbers; 1 where it is 0 or nothing was observed.
        filler: median of the numbers, or code 0 (the most frequent category); 0 where nothing was observed.
        observed: number of values that were not missing.
    """

    name: str
    categories: tuple[Any, ...]
    integer: bool
    low: float
    high: float
    centre: float
    spread: float
    filler: float
    observed: int
    is_category: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """One column as it came: float64 with NaN, or objects with None."""

    name: str
    values: npt.NDArray[Any]
    integer: bool = False

    @property
    def is_category(self) -> bool:
        """Whether the values are categories."""
        return self.values.dtype == object

    @property
    def missing(self) -> Bools:
        """(n,): where the value is missing."""
        if self.is_category:
            return np.fromiter((v is None for v in self.values), np.bool_, len(self.values))
        return np.isnan(self.values.astype(np.float64, copy=False))


def read(data: Any) -> list[Raw]:
    """The columns of a frame (pandas, polars, pyarrow), a 2-D array or a list of rows.

    NaN, None, `pandas.NA`, `NaT` and Arrow nulls are missing. Columns of objects whose present values are all numbers are
    numbers.

    Raises:
        DataError: not a table, duplicate column names, or a column that is neither numbers nor categories.
    """
    kind = type(data).__module__.partition(".")[0]
    if kind == "pandas" and hasattr(data, "iloc") and getattr(data, "ndim", 0) == 2:
        named = [(str(name), data.iloc[:, j]) for j, name in enumerate(data.columns)]
        columns = [_from_pandas(name, series) for name, series in named]
    elif kind == "polars" and hasattr(data, "get_columns"):
        columns = [_from_polars(series.name, series) for series in data.get_columns()]
    elif kind == "pyarrow" and hasattr(data, "column_names"):
        columns = [from_arrow(name, data.column(j)) for j, name in enumerate(data.column_names)]
    else:
        columns = _from_array(data)
    repeated = [name for name, n in Counter(c.name for c in columns).items() if n > 1]
    if repeated:
        raise DataError(f"column {repeated[0]!r} appears more than once; give every column its own name")
    return columns


def from_arrow(name: str, array: Any) -> Raw:
    """One Arrow column as numbers or categories.

    Raises:
        DataError: its type is neither.
    """
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
        kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        values = np.asarray(array.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return Raw(name, values, integer=not pa.types.is_floating(kind))
    if pa.types.is_decimal(kind):
        return Raw(name, np.asarray(array.cast(pa.float64()).to_numpy(), dtype=np.float64))
    if pa.types.is_null(kind):
        return Raw(name, np.full(len(array), np.nan))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise DataError(f"column {name!r} is {kind}, neither numbers nor categories; leave it out or convert it")
    return _from_objects(name, array.to_pylist())


def _from_array(data: Any) -> list[Raw]:
    array = np.asarray(data)
    if array.ndim != 2:
        raise DataError(
            f"expected a 2-dimensional table, got an array of shape {array.shape}; use reshape(-1, 1) for one column"
        )
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind in "fiub":
        whole = array.dtype.kind in "iub"
        return [Raw(name, array[:, j].astype(np.float64), whole) for j, name in enumerate(names)]
    if array.dtype.kind in "OUS":
        return [_from_objects(name, array[:, j].tolist()) for j, name in enumerate(names)]
    raise DataError(f"an array of dtype {array.dtype} holds neither numbers nor categories")


def _from_pandas(name: str, series: Any) -> Raw:
    kind = series.dtype
    if getattr(kind, "kind", "O") in "fiub" and kind.name != "category":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Raw(name, np.asarray(values), integer=kind.kind in "iub")
    if getattr(kind, "kind", "O") in "Mm":
        raise DataError(f"column {name!r} is {kind}, neither numbers nor categories; leave it out or convert it")
    return _from_objects(name, series.tolist())


def _from_polars(name: str, series: Any) -> Raw:
    kind = series.dtype
    if kind.is_numeric() or str(kind) == "Boolean":
        # polars keeps null and NaN apart; both are missing here
        values = series.cast(__import__("polars").Float64).to_numpy()
        return Raw(name, np.array(values, dtype=np.float64), integer=not (kind.is_float() or kind.is_decimal()))
    if str(kind) == "Null":
        return Raw(name, np.full(len(series), np.nan))
    if kind.is_temporal() or kind.is_nested():
        raise DataError(f"column {name!r} is {kind}, neither numbers nor categories; leave it out or convert it")
    return _from_objects(name, series.to_list())


def _from_objects(name: str, values: Sequence[Any]) -> Raw:
    present = [None if is_missing(v) else v for v in values]
    some = [v for v in present if v is not None]
    if not some:
        return Raw(name, np.full(len(present), np.nan))
    if all(isinstance(v, numbers.Real) and not isinstance(v, (bool, np.bool_)) for v in some):
        whole = all(isinstance(v, numbers.Integral) for v in some)
        return Raw(name, np.array([np.nan if v is None else float(v) for v in present]), whole)
    out = np.empty(len(present), dtype=object)
    for i, v in enumerate(present):
        if isinstance(v, (list, dict, set, np.ndarray)):
            raise DataError(
                f"column {name!r} holds {type(v).__name__} values, neither numbers nor categories; leave it out"
            )
        out[i] = v
    return Raw(name, out)


def is_missing(value: object) -> bool:
    """None, NaN, `pandas.NA` and `NaT`."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def learn(columns: Sequence[Raw]) -> tuple[Plan, ...]:
    """What is to be known about each column to encode further rows and to fill in values."""
    return tuple(_learn(c) for c in columns)


def _learn(column: Raw) -> Plan:
    if column.is_category:
        counts = Counter(v for v in column.values if v is not None)
        ordered = tuple(v for v, _ in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))))
        return Plan(column.name, ordered, False, 0, 0, 0, 1, 0, sum(counts.values()), is_category=True)
    seen = column.values[~np.isnan(column.values)]
    if not len(seen):
        return Plan(column.name, (), column.integer, 0, 0, 0, 1, 0, 0)
    filler = float(np.median(seen))
    if column.integer:
        filler = float(np.rint(filler))
    return Plan(
        column.name,
        (),
        column.integer,
        float(seen.min()),
        float(seen.max()),
        float(seen.mean()),
        spread(seen),
        filler,
        len(seen),
    )


def spread(values: Floats) -> float:
    """The standard deviation of the finite values; 1 where it is 0, not finite or there are none."""
    finite = values[np.isfinite(values)]
    scale = float(finite.std()) if len(finite) else 0.0
    # a constant column has a deviation of rounding noise, not of exactly 0
    size = float(np.abs(finite).max()) if len(finite) else 0.0
    return scale if np.isfinite(scale) and scale > 1e-12 * size else 1.0


def encode(columns: Sequence[Raw], plans: Sequence[Plan]) -> Floats:
    """(n, d): numbers, and codes of categories. NaN where the value is missing or its category was never learned.

    Raises:
        DataError: a column that was numbers holds text.
    """
    out = np.empty((len(columns[0].values) if columns else 0, len(columns)))
    for j, (column, plan) in enumerate(zip(columns, plans)):
        if plan.is_category and not column.is_category:
            # wholly missing, such a column reads as numbers
            if not np.isnan(column.values).all():
                raise DataError(f"column {plan.name!r} held categories before and holds numbers now")
            out[:, j] = np.nan
        elif plan.is_category:
            codes = {v: float(i) for i, v in enumerate(plan.categories)}
            out[:, j] = [codes.get(v, np.nan) if v is not None else np.nan for v in column.values.tolist()]
        elif column.is_category:
            raise DataError(f"column {plan.name!r} held numbers before and holds other values now")
        else:
            out[:, j] = column.values
    return out
