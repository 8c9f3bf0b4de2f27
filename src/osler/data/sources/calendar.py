"""What the calendar does to clocks: zones, daylight saving, day and month swapped, units of epochs."""

from __future__ import annotations

from typing import Any

import numpy as np

from osler.data.sources.clock import DAY, HOUR, Clock
from osler.data.sources.estimate import Times

QUARTER = HOUR // 4
WIDEST = 26 * HOUR
"""UTC-12 and UTC+14 lie 26 hours apart."""


def zone_offset(offset: float, slack: float) -> int | None:
    """The multiple of a quarter of an hour that an offset is within the slack, ns; None where it is none, or 0."""
    nearest = round(offset / QUARTER) * QUARTER
    if nearest == 0 or abs(nearest) > WIDEST or nearest % (24 * HOUR) == 0 or abs(offset - nearest) > slack:
        return None
    return nearest


def saving_step(jump: float, slack: float) -> bool:
    """Whether a jump is that of daylight saving: an hour, or half of one (Lord Howe Island)."""
    return any(abs(abs(jump) - size) <= slack for size in (HOUR, HOUR // 2))


def swapped(ns: Times) -> tuple[Times, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Times with day and month exchanged, and where that makes another valid date."""
    moment = ns.view("datetime64[ns]")
    day = moment.astype("datetime64[D]")
    month = moment.astype("datetime64[M]")
    year = moment.astype("datetime64[Y]").astype(np.int64) * 12
    of_month = (day - month.astype("datetime64[D]")).astype(np.int64)
    number = month.astype(np.int64) - year
    can = (of_month < 12) & (of_month != number)
    exchanged = (year + np.where(can, of_month, number)).astype("datetime64[M]").astype("datetime64[D]")
    days = exchanged.astype(np.int64) + np.where(can, number, of_month)
    return np.where(can, days * DAY + ns % DAY, ns), can


def swap_share(left: Times, right: Times) -> tuple[float, int]:
    """Of the pairs that lie a day or more apart: the share that exchanging day and month on the right brings together
    (within a day), and their number."""
    apart = np.abs(left - right) >= DAY
    if not apart.any():
        return 0.0, 0
    mended, can = swapped(right[apart])
    met = can & (np.abs(mended - left[apart]) < DAY)
    return float(np.mean(met)), int(np.count_nonzero(apart))


def outside_share(times: Times, reference: Times) -> tuple[float, float]:
    """Share of times outside the reference's range, before and after exchanging day and month."""
    low, high = int(reference.min()) - DAY, int(reference.max()) + DAY
    mended, can = swapped(times)
    out = (times < low) | (times > high)
    still = (mended < low) | (mended > high)
    return float(np.mean(out)), float(np.mean(np.where(can, out & still, out)))


def rescaled(clock: Clock, stored: str, units: dict[str, int]) -> float:
    """The middle of the column, ns since 1970, if its numbers were in the unit `stored`."""
    return clock.middle * units[stored]


def truncation(fine: Times, coarse: Times, grain: int) -> str:
    """What was done to the coarse times of the same events: `truncated`, `rounded`, or nothing (empty).

    Fine minus coarse then fills one grain evenly: from 0 up where they were cut off, around 0 where they were rounded.
    """
    difference = (fine - coarse).astype(np.float64) / grain
    low, middle, high = np.percentile(difference, [5, 50, 95])
    if not 0.75 < high - low < 1.05:
        return ""
    return "truncated" if abs(middle - 0.5) < 0.2 else "rounded" if abs(middle) < 0.2 else ""
