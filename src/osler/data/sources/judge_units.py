"""Times that are stored wrongly: in another unit, with day and month exchanged, cut off."""

from __future__ import annotations

import math

import numpy as np

from osler.core.finding import Confidence, Severity
from osler.data.sources import calendar
from osler.data.sources.clock import DAY, HOUR, UNIT_NS, Clock, epoch_unit
from osler.data.sources.durations import show
from osler.data.sources.estimate import Times
from osler.data.sources.pair import Pair

_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_RATIOS = {1e3: "1,000", 1e6: "1,000,000", 1e9: "1,000,000,000", 60.0: "60", 3600.0: "3,600"}
_GRAINS = {
    DAY: "whole days",
    HOUR: "whole hours",
    HOUR // 60: "whole minutes",
    UNIT_NS["s"]: "whole seconds",
    UNIT_NS["ms"]: "whole milliseconds",
    UNIT_NS["us"]: "whole microseconds",
}
_SWAP_SAMPLE = 200_000


def judge_units(pair: Pair, ours: Clock, theirs: Clock) -> bool:
    """Epochs counted in different units, or read in a wrong one."""
    column = pair.right.roles.time or ""
    if ours.kind == theirs.kind == "epoch" and ours.unit != theirs.unit:
        ratio = UNIT_NS[ours.unit] / UNIT_NS[theirs.unit]
        pair.report(
            "units",
            Severity.ERROR,
            Confidence.DEFINITE,
            f"`{ours.column}` counts {_WORDS[ours.unit]} since 1970 in {pair.left.name} and `{theirs.column}` counts "
            f"{_WORDS[theirs.unit]} in {pair.right.name}: the numbers differ by a factor of {_factor(ratio)}",
            f"convert both where they are read, e.g. pd.to_datetime(column, unit='{theirs.unit}', utc=True), and store "
            "timestamps with a zone",
            column,
            {"units": [ours.unit, theirs.unit], "ratio": max(ratio, 1 / ratio)},
        )
        # read by their own units the two can still be compared
        return False
    for clock, stream, other in ((ours, pair.left, theirs), (theirs, pair.right, ours)):
        stored = _seeming_unit(clock)
        if not stored or _seeming_unit(other) or not other.valid.any():
            continue
        known = other.ns[other.valid]
        low, high = float(known.min()), float(known.max())
        if low - (high - low) - DAY <= clock.middle * UNIT_NS[stored] <= high + (high - low) + DAY:
            ratio = UNIT_NS[stored] / UNIT_NS[clock.unit]
            when = "in 1970" if ratio > 1 else "thousands of years ahead"
            pair.report(
                "units",
                Severity.ERROR,
                Confidence.DEFINITE,
                f"`{clock.column}` of {stream.name} was read as {_WORDS[clock.unit]} and holds {_WORDS[stored]}: its "
                f"times lie {when}, a factor of {_factor(ratio)} away from those of the other source",
                f"read the numbers with their unit, e.g. pd.to_datetime(column, unit='{stored}', utc=True)",
                clock.column,
                {"source": stream.name, "read_as": clock.unit, "holds": stored, "ratio": max(ratio, 1 / ratio)},
            )
            return True
    return False


def _seeming_unit(clock: Clock) -> str:
    """The unit that a timestamp's numbers seem to be in, where it is not the one that it was read in."""
    if clock.kind != "timestamp":
        return ""
    unit = epoch_unit(clock.middle)
    return unit if unit and unit != clock.unit else ""


def _factor(ratio: float) -> str:
    size = max(ratio, 1 / ratio)
    return next((text for known, text in _RATIOS.items() if math.isclose(size, known, rel_tol=0.02)), f"{size:.4g}")


def judge_relative_units(pair: Pair, ours: Clock, theirs: Clock, left: Times, right: Times) -> bool:
    """Seconds since the start in one source and milliseconds in the other."""
    if (
        not (ours.numeric and theirs.numeric)
        or "relative" not in (ours.kind, theirs.kind)
        or len(left) < pair.settings.min_pairs
    ):
        return False
    x, y = left.astype(np.float64), right.astype(np.float64)
    low, high = np.percentile(x, [10, 90])
    start, stop = np.median(y[x <= low]), np.median(y[x >= high])
    run = np.median(x[x >= high]) - np.median(x[x <= low])
    slope = float((stop - start) / run) * UNIT_NS[ours.unit] / UNIT_NS[theirs.unit] if run else 0.0
    size = max(abs(slope), 1 / abs(slope)) if slope else 0.0
    known = next((k for k in _RATIOS if math.isclose(size, k, rel_tol=0.02)), None)
    if known is None:
        return False
    pair.report(
        "units",
        Severity.ERROR,
        Confidence.DEFINITE,
        f"`{theirs.column}` of {pair.right.name} runs {_RATIOS[known]} times {'faster' if slope > 1 else 'slower'} than "
        f"`{ours.column}` of {pair.left.name} in {len(left):,} matched rows: the two count in different units",
        "convert both to one unit where they are read, and put the unit into the column's name or type",
        theirs.column,
        {"ratio": size, "slope": slope, "pairs": len(left)},
    )
    return True


def judge_day_month(pair: Pair, ours: Clock, theirs: Clock, pairs: tuple[Times, Times] | None) -> bool:
    """Dates read day first that were written month first, or the other way round."""
    if ours.numeric or theirs.numeric:
        return False
    column, order = theirs.column, theirs.order or ours.order
    if pairs is not None and len(pairs[0]) >= pair.settings.min_pairs:
        every = max(1, len(pairs[0]) // _SWAP_SAMPLE)
        left, right = pairs[0][::every], pairs[1][::every]
        share, apart = calendar.swap_share(left, right)
        if apart < max(5, 0.05 * len(left)) or share < 0.8:
            return False
        count, of, source = round(share * apart * every), len(pairs[0]), pair.right.name
        text = f"in {count:,} of {of:,} matched rows day and month are exchanged between {pair.left.name} and {source}"
        facts: dict[str, object] = {"count": count, "of": of, "share": share}
    else:
        found = _swapped_range(ours, theirs)
        if found is None:
            return False
        before, after, source = (*found[:2], (pair.right if found[2] else pair.left).name)
        column = (theirs if found[2] else ours).column
        text = (
            f"{before:.0%} of the dates of {source} lie outside the other source's period, and {after:.0%} once day "
            "and month are exchanged"
        )
        facts = {"source": source, "outside": before, "outside_exchanged": after}
    ambiguous = " (no date in the text says which comes first)" if order == "ambiguous" else ""
    pair.report(
        "day-month",
        Severity.ERROR,
        Confidence.DEFINITE if pairs is not None else Confidence.PROBABLE,
        text + ambiguous,
        "parse with the format spelled out, e.g. pd.to_datetime(column, format='%d/%m/%Y'), and write ISO 8601 dates",
        column,
        facts,
    )
    return True


def _swapped_range(ours: Clock, theirs: Clock) -> tuple[float, float, bool] | None:
    for clock, other, right in ((theirs, ours, True), (ours, theirs, False)):
        times = clock.ns[clock.valid]
        times = times[:: max(1, len(times) // _SWAP_SAMPLE)]
        if len(times) < 30 or not other.valid.any():
            continue
        before, after = calendar.outside_share(times, other.ns[other.valid])
        if before > 0.2 and after < 0.1 * before:
            return before, after, right
    return None


def judge_cut_off(pair: Pair, ours: Clock, theirs: Clock, left: Times, right: Times) -> int:
    """The grain, ns, of times that were cut off or rounded in one source; 0 where they were not."""
    if max(ours.grain, theirs.grain) < 10 * min(ours.grain, theirs.grain):
        return 0
    coarse_left = ours.grain > theirs.grain
    grain = max(ours.grain, theirs.grain)
    fine, coarse = (right, left) if coarse_left else (left, right)
    what = calendar.truncation(fine, coarse, grain)
    if not what:
        return 0
    stream, clock = (pair.left, ours) if coarse_left else (pair.right, theirs)
    harms = pair.tolerance is not None and (grain if what == "truncated" else grain / 2) > pair.tolerance
    pair.report(
        "rounded",
        Severity.WARNING if harms else Severity.INFO,
        Confidence.DEFINITE,
        f"`{clock.column}` of {stream.name} was {'cut off' if what == 'truncated' else 'rounded'} to "
        f"{_GRAINS.get(grain, show(grain))}: its times are up to {show(grain if what == 'truncated' else grain / 2)} away "
        f"from those of the other source"
        + (f", more than the tolerance of {show(pair.tolerance)}" if harms and pair.tolerance is not None else ""),
        "keep the sub-second part where the time is written (timespec='microseconds', timestamp(6), not strftime "
        "without %f), or join with a tolerance of at least the lost part",
        clock.column,
        {"source": stream.name, "grain_s": grain / 1e9, "how": what},
    )
    return grain
