"""Python objects and numpy arrays to Arrow: always an array, never a crash, and a note where something was changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def from_objects(values: Any) -> tuple[pa.Array, str]:
    """Python objects (a list, an object array, a pandas series of objects) as an Arrow array, and a note or "".

    Where Arrow finds one type for all of them, that type is taken: strings, booleans, decimals, dates, lists, numbers
    (integers among floats become floats). Otherwise the values are mixed: they become text, each as `str` gives it, so
    that 1 and "1" are the same category, 1 and 1.0 are not. NaN and NaT among objects are missing values, as in pandas.
    """
    try:
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        pass
    else:
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not pa.types.is_binary(found.type) or all(isinstance(v, bytes) for v in values if not _missing(v)):
            return found, ""
    kinds = sorted({type(value).__name__ for value in values if not _missing(value)})
    text = [None if _missing(value) else _text(value) for value in values]
    shown = ", ".join(kinds[:4]) + (", …" if len(kinds) > 4 else "")
    return pa.array(text, pa.large_string()), f"holds mixed objects ({shown}); it is read as text"


def from_numpy(values: npt.NDArray[Any]) -> tuple[pa.Array, str]:
    """A numpy array of one dimension as an Arrow array, and a note or "".

    NaN stays a value (it is not null), NaT becomes null, a masked entry becomes null. Complex numbers become a struct
    of `real` and `imag`, which is nested and not judged.
    """
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    plain = np.ma.getdata(values) if mask is not None else values
    if plain.dtype.kind == "O":
        return from_objects([None if m else v for m, v in zip(mask, plain)] if mask is not None else plain)
    if plain.dtype.kind == "c":
        parts = [pa.array(np.ascontiguousarray(part, np.float64)) for part in (plain.real, plain.imag)]
        nulls = pa.array(mask) if mask is not None else None
        return pa.StructArray.from_arrays(parts, ["real", "imag"], mask=nulls), "holds complex numbers; not judged"
    if plain.dtype.kind == "V":
        return pa.array([bytes(v) for v in plain], pa.binary()), ""
    return pa.array(arrow_ready(plain), mask=mask), ""


def arrow_ready(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """In a dtype that Arrow takes: native byte order, no long double, a time unit from seconds on or days."""
    dtype = values.dtype
    if dtype.kind == "f" and dtype.itemsize > 8:
        return values.astype(np.float64)
    if dtype.kind in "mM":
        unit, _ = np.datetime_data(dtype)
        if unit == "generic":
            unit = "ns"
        arrow_unit = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s", "ps": "ns", "fs": "ns", "as": "ns"}.get(
            unit, unit
        )
        if dtype.kind == "m" and arrow_unit == "D":
            arrow_unit = "s"
        return values.astype(f"{dtype.kind}8[{arrow_unit}]", copy=False)
    if not dtype.isnative:
        return values.astype(dtype.newbyteorder("="))
    return values


def _missing(value: object) -> bool:
    """None, NaN, NaT, pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and bool(value != value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:
        # the plain representation holds the address, which would make every object a category of its own
        return type(value).__name__
    return str(value)


def rows_as_columns(rows: Sequence[dict[Any, Any]]) -> dict[str, list[Any]]:
    """A list of dicts as a dict of lists: every key of any row, None where a row lacks it."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: [row.get(key) for row in rows] for key in keys}
