"""From Arrow arrays to numpy: floats, validity, times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from osler.data.tables.kinds import Kind, kind_of

Values: TypeAlias = "pa.Array | pa.ChunkedArray"

NAT = int(np.iinfo(np.int64).min)
"""What `times` gives where there is no time: numpy's own NaT."""

_SECOND = 10**9
_TICK = {"s": _SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
_LATEST = int(np.iinfo(np.int64).max)


def floats(array: Values) -> npt.NDArray[np.float64]:
    """The values as float64, shape (n,); nulls become NaN.

    A float64 array without nulls is not copied: the result is then read-only. Booleans become 0 and 1, decimals the
    nearest float64, integers beyond 2**53 the nearest float64. Times and durations become seconds (since 1970-01-01 UTC
    for times), a null column NaN throughout. Dictionaries of numbers are decoded.

    Raises:
        TypeError: the column is text, binary or nested.
    """
    return _joined(array, _floats, np.float64)


def validity(array: Values) -> npt.NDArray[np.bool_]:
    """True where there is a value, shape (n,); NaN is a value, and so is an empty string."""
    return _joined(array, _validity, np.bool_)


def times(array: Values) -> npt.NDArray[np.int64]:
    """Nanoseconds since 1970-01-01 UTC, shape (n,); nulls become `NAT`.

    A timestamp without a zone is read as UTC. Times that nanoseconds in 64 bits cannot hold (before 1677-09-21, after
    2262-04-11; the year 9999 often stands for "never") become the nearest that can be held.

    Raises:
        TypeError: the column holds no timestamps or dates.
    """
    return _joined(array, _times, np.int64)


def _joined(array: Values, convert: Callable[[pa.Array], npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    if not isinstance(array, pa.ChunkedArray):
        return convert(array)
    if array.num_chunks == 1:
        return convert(array.chunk(0))
    out: npt.NDArray[Any] = np.empty(len(array), dtype)
    start = 0
    for chunk in array.chunks:
        out[start : start + len(chunk)] = convert(chunk)
        start += len(chunk)
    return out


def _floats(array: pa.Array) -> npt.NDArray[np.float64]:
    type_ = array.type
    if at.is_dictionary(type_):
        return _floats(array.dictionary_decode())
    kind = kind_of(type_)
    if kind is Kind.NULL:
        return np.full(len(array), np.nan)
    if kind is Kind.BOOLEAN:
        return _plain(array.cast(pa.uint8()))
    if kind in (Kind.INTEGER, Kind.NUMBER):
        return _plain(array.cast(pa.float64()) if at.is_decimal(type_) else array)
    if kind in (Kind.TIME, Kind.DURATION):
        counts, tick = _counts(array)
        seconds = counts * float(tick // _SECOND) if tick >= _SECOND else counts / (_SECOND // tick)
        return np.where(_validity(array), seconds, np.nan)
    raise TypeError(f"a column of type {type_} has no numbers")


def _plain(array: pa.Array) -> npt.NDArray[np.float64]:
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values.astype(np.float64, copy=False)


def _validity(array: pa.Array) -> npt.NDArray[np.bool_]:
    if at.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _times(array: pa.Array) -> npt.NDArray[np.int64]:
    type_ = array.type
    if at.is_dictionary(type_):
        return _times(array.dictionary_decode())
    if at.is_null(type_):
        return np.full(len(array), NAT)
    if kind_of(type_) is not Kind.TIME:
        raise TypeError(f"a column of type {type_} has no times")
    counts, tick = _counts(array)
    nanoseconds = counts
    if tick > 1:
        limit = _LATEST // tick
        nanoseconds = np.where(np.abs(counts) <= limit, counts * tick, np.where(counts < 0, -_LATEST, _LATEST))
    return np.where(_validity(array), nanoseconds, NAT)


def _counts(array: pa.Array) -> tuple[npt.NDArray[np.int64], int]:
    """The integers behind times and durations (0 where they are null), and how many nanoseconds each of them counts."""
    type_ = array.type
    if at.is_date32(type_):
        array, tick = array.cast(pa.int32()), 86_400 * _SECOND
    elif at.is_date64(type_):
        array, tick = array.cast(pa.int64()), _TICK["ms"]
    elif at.is_time32(type_):
        array, tick = array.cast(pa.int32()), _TICK[type_.unit]
    else:
        array, tick = array.cast(pa.int64()), _TICK[type_.unit]
    counts: npt.NDArray[np.int64] = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return counts, tick
