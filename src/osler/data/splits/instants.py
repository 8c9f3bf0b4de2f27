"""Reading a time column: timestamps, dates, ISO 8601 text, or plain numbers."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from osler.core.progress import Progress
from osler.data.need import DataError
from osler.data.splits.hashes import codes_of, mix
from osler.data.tables import Kind, Source, floats, times, validity

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_NS["w"] = 7 * _NS["d"]
_SPELLED = {"day": "d", "days": "d", "hour": "h", "hours": "h", "m": "min", "minutes": "min", "sec": "s", "µs": "us"}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*")
_OFFSET = r"([+-]\d{2}(:?\d{2})?|[Zz])\s*$"
# 1990 to 2100 as counts since 1970: the ranges of two units do not touch
_EPOCH = {"seconds": 1.0, "milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
_FROM, _TO = 631_152_000.0, 4_102_444_800.0


@dataclass(slots=True)
class Instants:
    """A time column, row by row.

    Attributes:
        values: nanoseconds since 1970-01-01 UTC (int64), or numbers in the column's own unit (int64 or float64).
        valid: where there is a time.
        numeric: whether `values` are plain numbers.
        aware, naive: how many times have a zone or an offset, and how many have none (both 0 for numbers).
        units: for numbers that look like counts since 1970: how many are seconds, milliseconds …
        groups: hash of the row's group, zeros without groups.
        grouped: whether groups were named.
    """

    values: Numbers
    valid: npt.NDArray[np.bool_]
    numeric: bool
    aware: int
    naive: int
    groups: npt.NDArray[np.uint64]
    grouped: bool
    units: dict[str, int] = field(default_factory=dict)

    @property
    def second(self) -> float:
        """How much of `values` is one second; 0 where that is not known."""
        if not self.numeric:
            return 1e9
        return _EPOCH[next(iter(self.units))] if len(self.units) == 1 else 0.0


def read_instants(source: Source, name: str, group: tuple[str, ...], progress: Progress) -> Instants:
    """The time column of a source, with the hash of each row's group.

    Raises:
        DataError: the column is unknown, or holds no times.
    """
    column = source.column(name)
    allowed = (Kind.TIME, Kind.INTEGER, Kind.NUMBER, Kind.CATEGORY)
    if column.kind not in allowed:
        raise DataError(f"{source.name}: column {name!r} is {column.kind.value} and holds no times")
    values: list[Any] = []
    valid: list[npt.NDArray[np.bool_]] = []
    groups: list[npt.NDArray[np.uint64]] = []
    aware = naive = done = 0
    for batch in source.batches([name, *group]):
        array = batch.column(0)
        present = validity(array)
        if column.kind is Kind.TIME:
            values.append(times(array))
            count = int(present.sum())
            aware, naive = (aware + count, naive) if column.zone else (aware, naive + count)
        elif column.kind is Kind.CATEGORY:
            stamps, zoned = _parsed(array, name, source.name)
            values.append(stamps)
            aware += int(zoned.sum())
            naive += int((present & ~zoned).sum())
        elif column.kind is Kind.INTEGER:
            values.append(array.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False))
        else:
            numbers = floats(array)
            present = np.isfinite(numbers)
            values.append(np.where(present, numbers, 0.0))
        valid.append(present)
        groups.append(_group_hashes(batch, group))
        done += batch.num_rows
        progress("times read", done, source.rows)
    numeric = column.kind in (Kind.INTEGER, Kind.NUMBER)
    empty = np.zeros(0, np.int64)
    out = Instants(
        np.concatenate(values) if values else empty,
        np.concatenate(valid) if valid else empty.astype(np.bool_),
        numeric,
        aware,
        naive,
        np.concatenate(groups) if groups else empty.astype(np.uint64),
        bool(group),
    )
    if numeric:
        out.units = _units(out.values[out.valid])
    return out


def span(value: Any, what: str, instants: Instants) -> float:
    """A gap or embargo in the unit of the column: `7d`, `500ms`, a timedelta, or a number for a column of numbers.

    Raises:
        DataError: it is negative, cannot be read, or does not fit the column.
    """
    number = is_number(value)
    if isinstance(value, str):
        try:
            value, number = float(value), True
        except ValueError:
            pass
    if not number:
        length = nanoseconds(value, what)
        if instants.numeric and not instants.second:
            raise DataError(f"{what} is a duration, but the time column holds plain numbers: give it in their unit")
        return length / 1e9 * instants.second if instants.numeric else float(length)
    if not np.isfinite(value) or value < 0:
        raise DataError(f"{what} must be a number of at least 0")
    if value and not instants.numeric:
        raise DataError(f"{what} {value:g} has no unit, and the time column holds timestamps: write for instance 7d")
    return float(value)


def is_number(value: Any) -> bool:
    """Whether it is a plain number; numpy counts its durations among the integers, and Python its truth values."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.timedelta64))


def nanoseconds(value: Any, what: str) -> int:
    """A duration: `7d`, `500ms`, a timedelta or a timedelta64.

    Raises:
        DataError: it is negative or cannot be read.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise DataError(f"{what} {value!r} is no duration: write 500ms, 30s, 15min, 12h, 7d or 2w")
        unit = match[2] if match[2] in _NS else _SPELLED.get(match[2].lower(), match[2].lower())
        if unit not in _NS:
            raise DataError(f"{what} {value!r} has no known unit: one of {', '.join(_NS)}")
        return round(float(match[1]) * _NS[unit])
    if isinstance(value, datetime.timedelta):
        value = np.timedelta64(value)
    if not isinstance(value, np.timedelta64):
        raise DataError(f"{what} must be a duration such as 7d, not {value!r}")
    if np.isnat(value):
        raise DataError(f"{what} is not a time")
    length = int(value.astype("timedelta64[ns]").astype(np.int64))
    if length < 0:
        raise DataError(f"{what} must not be negative")
    return length


def in_words(amount: float, instants: Instants) -> str:
    """A length of time for a message: `3.5 days`, or the number where the unit is not known."""
    if not instants.second:
        return f"{amount:g}"
    seconds = amount / instants.second
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit if round(seconds / size, 2) != 1 else unit[:-1]}"
    return f"{seconds * 1e3:.3g} ms"


def _parsed(array: pa.Array, name: str, source: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    text = array.cast(pa.string())
    zoned = pc.fill_null(pc.match_substring_regex(text, _OFFSET), False)
    # a date such as 2024-03-01 ends like an offset
    dates = pc.fill_null(pc.match_substring_regex(text, r"^\s*\d{4}-\d{2}(-\d{2})?\s*$"), False)
    zoned = pc.and_(zoned, pc.invert(dates))
    try:
        with_zone = pc.if_else(zoned, text, None).cast(pa.timestamp("ns", "UTC"))
        without = pc.if_else(zoned, None, text).cast(pa.timestamp("ns"))
    except pa.ArrowInvalid:
        raise DataError(
            f"{source}: column {name!r} is text and not every value is an ISO 8601 time: parse it to timestamps first"
        ) from None
    mask: npt.NDArray[np.bool_] = zoned.to_numpy(zero_copy_only=False)
    return np.where(mask, times(with_zone), times(without)), mask


def _units(values: Numbers) -> dict[str, int]:
    """Counts since 1970 by unit; empty unless all values but zeros are such counts."""
    counts = {unit: int(((values >= _FROM * per) & (values <= _TO * per)).sum()) for unit, per in _EPOCH.items()}
    found = {unit: n for unit, n in counts.items() if n}
    return found if found and sum(found.values()) == int((values != 0).sum()) else {}


def _group_hashes(batch: pa.RecordBatch, group: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    total = np.zeros(batch.num_rows, np.uint64)
    for name in group:
        codes, classes = codes_of(batch.column(name))
        total = mix(total * np.uint64(31) + codes + classes.astype(np.uint64))
    return total
