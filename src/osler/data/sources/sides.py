"""The two sides of an as-of join, and what must hold of them before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from osler.data.need import DataError
from osler.data.sources.clock import UNIT_NS, Clock, read_clock
from osler.data.sources.durations import parse_duration
from osler.data.sources.ids import Rows
from osler.data.sources.keys import Codes, Mask, encode, read_keys
from osler.data.sources.native import Native


class AlignmentError(DataError):
    """Two sides that do not line up.

    Attributes:
        reason: `zone`, `unit`, `type`, `null`, `unsorted`, `duplicate`, `future` or `unmatched`.
        side: `left`, `right` or `both`.
        row: the first offending row, counted from 0; None where it is not one row's fault.
    """

    def __init__(self, message: str, reason: str, side: str, row: int | None = None) -> None:
        super().__init__(message)
        self.reason, self.side, self.row = reason, side, row


@dataclass(slots=True)
class Side:
    """One side's times and groups.

    Attributes:
        times: [rows] int64 ns of timestamps; of plain numbers themselves, int64 or float64.
        known: where there is a time. unit: ns in one unit of `times`, 0 for numbers that count nothing known.
    """

    name: str
    clock: Clock
    times: np.ndarray[Any, Any]
    known: Mask
    unit: int
    groups: Codes | None
    grouped: Mask


def two_names(text: str) -> tuple[str, str]:
    first, found, second = text.partition("=")
    return (first.strip(), second.strip()) if found else (text, text)


def read_sides(
    ours: Native, theirs: Native, on_left: str, on_right: str, groups: list[tuple[str, str]]
) -> tuple[Side, Side]:
    tables = [ours.arrow([on_left, *(g[0] for g in groups)]), theirs.arrow([on_right, *(g[1] for g in groups)])]
    sides = []
    for table, name, on in zip(tables, ("left", "right"), (on_left, on_right)):
        array = table.column(on)
        if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
            raise DataError(
                f"the {name} side's {on!r} holds text: convert it to timestamps first, text has its own order"
            )
        clock = read_clock(array, on, f"the {name} side")
        times, known, unit = clock.ns, clock.valid, 1
        if clock.numeric and not pa.types.is_duration(array.type):
            times, known = _plain(array)
            unit = UNIT_NS[clock.unit] if clock.kind == "epoch" else 0
        sides.append(Side(name, clock, times, known, unit, None, np.ones(len(array), bool)))
    if groups:
        keys = [
            read_keys([table.column(g[i]) for g in groups], [g[i] for g in groups]) for i, table in enumerate(tables)
        ]
        coded = encode(*keys)
        if not coded.same_type:
            raise AlignmentError(
                f"by={keys[0].name!r} is {keys[0].types} on the left and {keys[1].types} on the right: no row would "
                "match; store it in one type",
                "type",
                "both",
            )
        for side, key, codes in zip(sides, keys, (coded.left, coded.right)):
            side.groups, side.grouped = codes, key.valid
    return sides[0], sides[1]


def _plain(array: pa.ChunkedArray) -> tuple[np.ndarray[Any, Any], Mask]:
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        return np.asarray(pc.fill_null(array, 0)).astype(np.int64), np.asarray(pc.is_valid(array))
    values = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return values, np.isfinite(values)


def assert_same_time(a: Side, b: Side) -> None:
    for side in (a, b):
        lost = np.flatnonzero(~side.known)
        if len(lost):
            beyond = " or lies outside the years 1678–2262" if side.unit == 1 and side.clock.outside else ""
            raise AlignmentError(
                f"row {lost[0]} of the {side.name} side has no time in {side.clock.column!r}{beyond} ({len(lost):,} such rows): "
                "drop or fill them first",
                "null",
                side.name,
                int(lost[0]),
            )
    if not len(a.times) or not len(b.times):
        return
    if a.clock.numeric != b.clock.numeric or (a.clock.numeric and a.clock.unit != b.clock.unit):
        words = [f"{s.clock.kind} ({s.clock.unit})" if s.clock.numeric else "timestamps" for s in (a, b)]
        raise AlignmentError(
            f"{a.clock.column!r} holds {words[0]} on the left and {words[1]} on the right, from row 0 on: convert both to "
            "timestamps with a zone",
            "unit",
            "both",
            0,
        )
    if a.clock.aware != b.clock.aware:
        bare = a if a.clock.aware is False else b
        raise AlignmentError(
            f"{bare.clock.column!r} of the {bare.name} side has no zone and the other side's has one, from row 0 on: attach "
            "the zone (tz_localize, replace_time_zone) before joining",
            "zone",
            bare.name,
            0,
        )


def tolerance_of(value: object, side: Side) -> int | float | None:
    """The tolerance in the unit of the side's times."""
    if value is None:
        return None
    span: int | float
    if side.unit:
        span = parse_duration(value, "the tolerance")
        span = span // side.unit if side.times.dtype.kind == "i" else span / side.unit
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        span = int(value) if side.times.dtype.kind == "i" else float(value)
    else:
        raise DataError(
            f"{side.clock.column!r} holds plain numbers: give the tolerance as a number in their unit, not {value!r}"
        )
    if span < 0:
        raise DataError(f"the tolerance {value!r} is negative")
    return span


def order_of(side: Side, sort: bool) -> Rows | None:
    """The rows by time, None where they stand so already (within each group)."""
    times = side.times
    back = times[1:] < times[:-1]
    if not back.any():
        return None
    if side.groups is not None and not sort:
        order = np.argsort(side.groups, kind="stable")
        inner = (times[order][1:] < times[order][:-1]) & (side.groups[order][1:] == side.groups[order][:-1])
        rows = order[1:][inner]
        back = np.zeros(len(times) - 1, bool)
        back[rows - 1] = True
        if not len(rows):
            return np.argsort(times, kind="stable")
    if not sort:
        rows = np.flatnonzero(back) + 1
        within = " within its group" if side.groups is not None else ""
        raise AlignmentError(
            f"row {rows[0]} of the {side.name} side is older than the row before it{within} ({len(rows):,} such rows): sort "
            "by time, or say sort=True",
            "unsorted",
            side.name,
            int(rows[0]),
        )
    return np.argsort(times, kind="stable")


def without_twins(side: Side, order: Rows | None, duplicates: str) -> Rows | None:
    """The order without all but the last of the rows that share group and time."""
    if len(side.times) < 2:
        return order
    rows = order if order is not None else np.arange(len(side.times))
    times = side.times[rows]
    if side.groups is None:
        twin = times[1:] == times[:-1]
        earlier, later = rows[:-1][twin], rows[1:][twin]
    else:
        same = times[1:] == times[:-1]
        if not same.any():
            return order
        near = np.zeros(len(rows), bool)
        near[1:] = same
        near[:-1] |= same
        rows, times = rows[near], times[near]
        groups = side.groups[rows]
        by_both = np.lexsort((times, groups))
        t, g, w = times[by_both], groups[by_both], side.grouped[rows][by_both]
        twin = (t[1:] == t[:-1]) & (g[1:] == g[:-1]) & w[1:] & w[:-1]
        earlier, later = rows[by_both[:-1][twin]], rows[by_both[1:][twin]]
    if not len(later):
        return order
    if duplicates == "error":
        row = int(later.min())
        raise AlignmentError(
            f"row {row} of the right side has the same {'group and time' if side.groups is not None else 'time'} as an "
            f"earlier one ({len(later):,} such rows): which of them is meant is not said; drop one, or say duplicates='last'",
            "duplicate",
            "right",
            row,
        )
    keep = np.ones(len(side.times), bool)
    keep[earlier] = False
    every = order if order is not None else np.arange(len(side.times))
    return every[keep[every]]
