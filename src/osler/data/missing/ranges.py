"""Values of one column outside what training saw."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Bools, Floats, spread
from osler.data.missing.tails import tail_of
from osler.data.missing.units import Unit, some_rows, whole_column


@dataclass(frozen=True, slots=True)
class Outside:
    """What lies outside in one column.

    Attributes:
        rows: (k,) places in the current values, the furthest first.
        distance: spreads beyond the nearest end of the reference's range, of the furthest value.
        p: chance of what was seen if the column had not changed, corrected for the number of values.
        moved: many values lie just outside, rather than single ones far out.
        unit: the unit that explains it; None where none does.
        whole: the unit concerns the whole column.
        infinite: values that are infinite where the reference has none.
    """

    rows: npt.NDArray[np.int64]
    distance: float
    p: float
    moved: bool = False
    unit: Unit | None = None
    whole: bool = False
    infinite: int = 0


def counts_on(values: Floats) -> bool:
    """Whether a column numbers its rows: whole, never repeated, and rising or without gaps. Such columns always go on."""
    seen = values[np.isfinite(values)]
    if len(seen) < 20 or np.any(seen != np.rint(seen)) or len(np.unique(seen)) < len(seen):
        return False
    steps = np.diff(seen)
    return bool(np.all(steps > 0) or np.all(steps < 0) or float(np.ptp(seen)) < 2 * len(seen))


def judged(reference: Floats) -> bool:
    """Whether a reference column (finite, ascending) allows a judgement on both sides."""
    return _dense(reference) or (tail_of(reference, 1) is not None and tail_of(reference, -1) is not None)


def outside(reference: Floats, current: Floats, width: int, settings: Missing) -> Outside | None:
    """What lies outside; None where nothing does or it cannot be judged.

    Args:
        reference: (n,) values, NaN where missing.
        current: (m,) values, NaN where missing.
        width: number of columns looked at, for the correction.
    """
    ordered = np.sort(reference[np.isfinite(reference)])
    if len(ordered) < settings.min_rows:
        return None
    infinite = np.isinf(current)
    fresh = int(infinite.sum()) if not np.isinf(reference).any() else 0
    finite = np.where(np.isfinite(current), current, np.nan)
    m = int(np.isfinite(finite).sum())
    low, middle, high = float(ordered[0]), float(np.median(ordered)), float(ordered[-1])
    size = _size(ordered)
    beyond = np.nan_to_num(np.maximum(low - finite, finite - high), nan=-1.0)
    p = np.ones(len(current))
    if low < high and m:
        for sign in (1, -1):
            side = sign * (finite - middle) > 0
            tail = tail_of(ordered, sign)
            if tail is not None:
                side &= np.abs(finite - middle) > settings.range_far * abs((high if sign > 0 else low) - middle)
                p[side] = np.minimum(1.0, tail.probability(finite[side]) * m)
            elif _dense(ordered):
                p[side & (beyond > settings.range_width * (high - low))] = 0.0
    level = settings.level / width
    hit: Bools = (p < level) | (infinite & (fresh > 0))
    worst = float(p.min()) if len(p) else 1.0
    moved = False
    if not hit.any() and low < high and m:
        hit, worst = _moved(ordered, finite, beyond, size, level, settings)
        moved = bool(hit.any())
    unit = whole_column(ordered, np.sort(finite[np.isfinite(finite)]), settings) if low < high else None
    whole = unit is not None
    if unit is None:
        unit = some_rows(ordered, finite[hit & np.isfinite(finite)], settings)
    if not hit.any() and not whole:
        return None
    rows = np.flatnonzero(hit)
    rows = rows[np.lexsort((rows, -np.where(infinite[rows], np.inf, beyond[rows])))]
    furthest = float(beyond[rows].max() / size) if len(rows) else 0.0
    return Outside(rows, max(furthest, 0.0), worst, moved, unit, whole, fresh)


def _moved(
    ordered: Floats, finite: Floats, beyond: Floats, size: float, level: float, settings: Missing
) -> tuple[Bools, float]:
    """Many values just outside: under exchangeability k or more of m new values beyond the largest of n have the chance
    C(n+m-k, n) / C(n+m, n), whatever the distribution."""
    n, m = len(ordered), int(np.isfinite(finite).sum())
    out = np.zeros(len(finite), np.bool_)
    worst = 1.0
    for side in (finite > ordered[-1], finite < ordered[0]):
        k = int(side.sum())
        if k < settings.moved_share * m or k < 3:
            continue
        chance = math.exp(
            math.lgamma(n + m - k + 1) - math.lgamma(m - k + 1) - math.lgamma(n + m + 1) + math.lgamma(m + 1)
        )
        if chance < level / 2 and float(np.median(beyond[side])) > settings.moved_distance * size:
            out |= side
            worst = min(worst, chance)
    return out, worst


def _dense(ordered: Floats) -> bool:
    """Whether the values are few whole numbers without wide gaps: counts, grades, flags."""
    distinct = np.unique(ordered)
    if len(distinct) > 100 or np.any(distinct != np.rint(distinct)):
        return False
    return bool(np.ptp(distinct) <= 2 * len(distinct))


def _size(ordered: Floats) -> float:
    """The spread that distances are told in: the interquartile range over 1.349 (the standard deviation of a normal law),
    or the standard deviation where the middle half is one value."""
    q1, q3 = np.percentile(ordered, [25, 75])
    return float(q3 - q1) / 1.349 or spread(ordered)
