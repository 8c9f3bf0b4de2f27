"""A time column as instants, whatever it was stored as, and what its storage says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from osler.data.need import DataError, need

DAY = 86_400_000_000_000
HOUR = 3_600_000_000_000
UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1, "d": DAY}
_STEPS = (DAY, HOUR, 60_000_000_000, 1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000, 1)
_SAMPLE = 200_000
_LIMIT = np.iinfo(np.int64).max

# Text is tried in this order; the first form that reads (nearly) every value is taken.
_AWARE = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f %#z")
_NAIVE = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y%m%d")
_CLOCK = (" %H:%M:%S%.f", " %H:%M", "")


@dataclass(slots=True)
class Clock:
    """A time column.

    Attributes:
        column: its name.
        kind: `timestamp`, `date`, `text`, `epoch` (numbers since 1970) or `relative` (numbers since some start).
        unit: unit in which it is stored, guessed from the size of the numbers for `epoch`; empty for text.
        zone: name of the zone of a timestamp with one, `UTC` for text with offsets, else None.
        aware: whether it names an instant; None for numbers, which by convention count from 1970 in UTC.
        ns: int64 [rows], nanoseconds since 1970 in UTC (naive columns as if they were UTC); 0 where not valid.
        valid: bool [rows].
        outside: rows whose time does not fit into int64 nanoseconds (years before 1678 or after 2262); not valid.
        bare: rows of a text column without an offset among rows with one.
        order: `day-first`, `month-first` or `ambiguous` for text such as 03/04/2024, else empty.
        middle: median size of the numbers as they are stored, 0 for text and dates.
        grain: the longest of 1 ns, 1 µs, 1 ms, 10 ms, 100 ms, 1 s, 1 min, 1 h, 1 d that divides all times.
    """

    column: str
    kind: str
    unit: str
    zone: str | None
    aware: bool | None
    ns: np.ndarray[Any, np.dtype[np.int64]]
    valid: np.ndarray[Any, np.dtype[np.bool_]]
    outside: int = 0
    bare: int = 0
    order: str = ""
    grain: int = 1
    middle: float = 0.0

    @property
    def numeric(self) -> bool:
        """Whether the column holds plain numbers."""
        return self.kind in ("epoch", "relative")


def read_clock(array: pa.ChunkedArray, column: str, source: str) -> Clock:
    """The instants of a column.

    Args:
        array: timestamps, dates, numbers (seconds, milli-, micro- or nanoseconds since 1970, told apart by their size)
            or text (ISO 8601, dates with day or month first, or such numbers).
        column, source: names for messages.

    Raises:
        DataError: the column holds something else, or text that is no time.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
        kind = array.type
    if pa.types.is_null(kind):
        clock = Clock(column, "timestamp", "", None, None, _zeros(len(array)), np.zeros(len(array), bool))
    elif pa.types.is_timestamp(kind):
        ns, valid, outside = _scaled(_ints(array), _valid(array), UNIT_NS[kind.unit])
        clock = Clock(column, "timestamp", kind.unit, kind.tz, kind.tz is not None, ns, valid, outside)
        clock.middle = _middle(_ints(array), _valid(array))
    elif pa.types.is_duration(kind):
        ns, valid, outside = _scaled(_ints(array), _valid(array), UNIT_NS[kind.unit])
        clock = Clock(column, "relative", kind.unit, None, None, ns, valid, outside)
    elif pa.types.is_date(kind):
        days = _ints(array.cast(pa.date32()).cast(pa.int32()))
        ns, valid, outside = _scaled(days, _valid(array), DAY)
        clock = Clock(column, "date", "d", None, False, ns, valid, outside)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        clock = _numbers(array, column)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        clock = _text(array, column, source)
    else:
        raise DataError(f"{source}: column {column!r} holds {kind}, which is no time; name another one with --time")
    clock.grain = grain(clock.ns, clock.valid)
    return clock


def grain(ns: np.ndarray[Any, np.dtype[np.int64]], valid: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
    """The longest of 1 ns … 1 d that divides all times, looked up in at most 200,000 evenly spread rows."""
    every = max(1, len(ns) // _SAMPLE)
    sample = ns[::every][valid[::every]]
    if not len(sample):
        return 1
    return next(step for step in _STEPS if not np.any(sample % step))


def epoch_unit(value: float) -> str:
    """The unit in which a number since 1970 is counted, by its size; empty for numbers too small to be one.

    Seconds from 1973 to 5138, and the same years in the other units, do not overlap.
    """
    size = abs(value)
    for unit, low in (("s", 1e8), ("ms", 1e11), ("us", 1e14), ("ns", 1e17)):
        if low <= size < low * 1e3:
            return unit
    return ""


def _zeros(n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.zeros(n, np.int64)


def _valid(array: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if array.null_count == 0:
        return np.ones(len(array), bool)
    return np.asarray(pc.is_valid(array))


def _ints(array: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    numbers = array if pa.types.is_integer(array.type) else array.cast(pa.int64())
    filled = pc.fill_null(numbers, 0) if numbers.null_count else numbers
    return np.asarray(filled).astype(np.int64, copy=False)


def _scaled(
    values: np.ndarray[Any, Any], valid: np.ndarray[Any, np.dtype[np.bool_]], factor: int
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.bool_]], int]:
    if factor == 1 and valid.all():
        return values.astype(np.int64, copy=False), valid, 0
    limit = _LIMIT // factor
    fits = (values <= limit) & (values >= -limit)
    outside = int(np.count_nonzero(valid & ~fits))
    valid = valid & fits
    return np.where(valid, values, 0).astype(np.int64) * factor, valid, outside


def _numbers(array: pa.ChunkedArray, column: str) -> Clock:
    floating = not pa.types.is_integer(array.type)
    if pa.types.is_unsigned_integer(array.type) and array.type.bit_width == 64:
        array, floating = array.cast(pa.float64(), safe=False), True
    if floating:
        values = np.asarray(pc.fill_null(array.cast(pa.float64(), safe=False), np.nan))
        valid = np.isfinite(values)
    else:
        values, valid = _ints(array), _valid(array)
    middle = _middle(values, valid)
    unit = epoch_unit(middle)
    factor = UNIT_NS[unit or "s"]
    if floating:
        scaled = np.where(valid, values, 0.0) * factor
        fits = np.abs(scaled) < 9.2e18
        outside = int(np.count_nonzero(~fits))
        ns = np.where(fits, np.rint(scaled), 0).astype(np.int64)
        valid = valid & fits
    else:
        ns, valid, outside = _scaled(values, valid, factor)
    return Clock(column, "epoch" if unit else "relative", unit or "s", None, None, ns, valid, outside, middle=middle)


def _middle(values: np.ndarray[Any, Any], valid: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    every = max(1, len(values) // _SAMPLE)
    some = values[::every][valid[::every]]
    return float(np.median(np.abs(some))) if len(some) else 0.0


def _text(array: pa.ChunkedArray, column: str, source: str) -> Clock:
    pl = need("polars", "data", "reading times from text")
    text = pl.from_arrow(array).str.strip_chars()
    text = pl.select(pl.when(text.str.len_bytes() > 0).then(text)).to_series()
    some = text.drop_nulls()
    some = some.gather_every(max(1, len(some) // 20_000))
    if not len(some):
        return Clock(column, "text", "", None, None, _zeros(len(array)), np.zeros(len(array), bool))
    if float(some.str.contains(r"^[+-]?\d{8}$").mean() or 0) < 0.99:
        numbers = some.cast(pl.Float64, strict=False)
        if numbers.null_count() <= 0.01 * len(some):
            return _numbers(pa.chunked_array([text.cast(pl.Float64, strict=False).to_arrow()]), column)
    parsed, aware, order = _parse(pl, text, some)
    bare = 0
    if parsed.null_count() > text.null_count():
        rest, _, _ = _forms(pl, text.filter(parsed.is_null()), _NAIVE if aware else _AWARE)
        if rest.count():
            bare = int(parsed.count()) if not aware else int(rest.count())
            aware = True
            parsed = parsed.scatter(parsed.is_null().arg_true(), rest)
    if 2 * parsed.count() < text.count():
        raise DataError(
            f"{source}: column {column!r} holds text that is no time; write ISO 8601 such as 2024-03-31T12:00:00Z"
        )
    values = pa.chunked_array([parsed.to_arrow()])
    ns, valid, outside = _scaled(_ints(values.cast(pa.int64())), _valid(values), 1)
    return Clock(column, "text", "", "UTC" if aware else None, aware, ns, valid, outside, bare, order)


def _parse(pl: Any, text: Any, some: Any) -> tuple[Any, bool, str]:
    """Times in UTC as Int64 nanoseconds, whether they have an offset, and the order of day and month."""
    candidates: list[tuple[float, bool, tuple[str, ...], str]] = []
    for aware, forms in ((True, _AWARE), (False, _NAIVE)):
        _, share, form = _forms(pl, some, forms)
        candidates.append((share, aware, (form,) if form else (), ""))
    separators = [
        c for c in "/.-" if float(some.str.contains(rf"^\d{{1,2}}\{c}\d{{1,2}}\{c}\d{{4}}").mean() or 0) > 0.5
    ]
    if separators:
        c = separators[0]
        first = some.str.extract(r"^(\d{1,2})").cast(pl.Int32, strict=False).max() or 0
        second = some.str.extract(rf"^\d{{1,2}}\{c}(\d{{1,2}})").cast(pl.Int32, strict=False).max() or 0
        order = "day-first" if first > 12 else "month-first" if second > 12 else "ambiguous"
        date = f"%m{c}%d{c}%Y" if order == "month-first" else f"%d{c}%m{c}%Y"
        _, share, form = _forms(pl, some, tuple(date + tail for tail in _CLOCK))
        candidates.append((share, False, (form,) if form else (), order))
    _, aware, chosen, order = max(candidates, key=lambda found: found[0])
    parsed, _, _ = _forms(pl, text, chosen)
    return parsed, aware, order


def _forms(pl: Any, text: Any, forms: tuple[str, ...]) -> tuple[Any, float, str]:
    """The parsed values of the form that reads most of them, the share that it reads, and the form."""
    best: tuple[Any, float, str] = (pl.Series("t", [None] * len(text), dtype=pl.Int64), 0.0, "")
    for form in forms:
        try:
            if "z" in form:
                # Z is not an offset to every parser of %z
                plain = text.str.replace(r"[Zz]$|\s*UTC$", "+00:00")
                parsed = plain.str.to_datetime(form, time_unit="ns", time_zone="UTC", strict=False)
            else:
                parsed = text.str.to_datetime(form, time_unit="ns", strict=False)
        except (pl.exceptions.PolarsError, ValueError):
            continue
        share = parsed.count() / len(text) if len(text) else 0.0
        if share > best[1]:
            best = (parsed.cast(pl.Int64), share, form)
        if share > 0.99:
            break
    return best
