"""Clocks that disagree: units, day and month, zones, steps, offset, drift, cut-off times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Severity
from osler.data.sources import calendar
from osler.data.sources.clock import DAY, HOUR, Clock
from osler.data.sources.durations import show
from osler.data.sources.estimate import Clocks, Times, compare_clocks
from osler.data.sources.judge_units import judge_cut_off, judge_day_month, judge_relative_units, judge_units
from osler.data.sources.lags import event_lag, follow, signal_lag
from osler.data.sources.pair import Pair

_FASTEST = 0.05
"""No clock gains an hour a day; times that run apart faster are in other units or of other events."""


def judge_clocks(pair: Pair, regular: bool) -> None:
    """Compare the clocks of two sources by what they share: ids, the pattern of events, or a measured quantity.

    Args:
        regular: whether one of the sources is sampled at a rate, so that its times alone have no pattern.
    """
    ours, theirs = pair.left.clock, pair.right.clock
    if ours is None or theirs is None:
        return
    for clock, stream in ((ours, pair.left), (theirs, pair.right)):
        if not clock.valid.any() and not clock.outside:
            pair.skip("clocks", f"{stream.name} has no row with a time")
            return
    if judge_units(pair, ours, theirs):
        return
    pairs = _matched(pair, ours, theirs)
    if pairs is not None and judge_relative_units(pair, ours, theirs, *pairs):
        return
    if judge_day_month(pair, ours, theirs, pairs):
        return
    if pairs is not None:
        if len(pairs[0]) < pair.settings.min_pairs:
            pair.skip("clocks", f"{len(pairs[0])} ids match; {pair.settings.min_pairs} are needed to compare clocks")
            return
        pair.clocks = compare_clocks(*pairs, pair.settings.interval_z, pair.slack)
        grain = judge_cut_off(pair, ours, theirs, *pairs)
        _judge(pair, pair.clocks, grain, np.abs(pairs[1] - pairs[0]))
    elif not _by_pattern(pair, ours, theirs, regular):
        _mixed_zones(pair, None)


def _matched(pair: Pair, ours: Clock, theirs: Clock) -> tuple[Times, Times] | None:
    """The times of the rows that one id names on both sides; None where ids do not name single rows."""
    if pair.shape != "one" or pair.tallies is None or pair.shared is None:
        return None
    left = pair.tallies[0].first[pair.shared.left]
    right = pair.tallies[1].first[pair.shared.right]
    known = ours.valid[left] & theirs.valid[right]
    return ours.ns[left[known]], theirs.ns[right[known]]


def _by_pattern(pair: Pair, ours: Clock, theirs: Clock, regular: bool) -> bool:
    """Compare clocks without single matched rows; False where that is not possible, which is then said."""
    if pair.shape in ("left", "right"):
        many = pair.right.name if pair.shape == "left" else pair.left.name
        pair.skip("clock offset", f"an id names many rows of {many}: their times are not those of one event")
        return False
    left, right = ours.ns[ours.valid], theirs.ns[theirs.valid]
    if pair.left.values is not None and pair.right.values is not None:
        return _by_values(pair, ours, theirs)
    if regular:
        pair.skip(
            "clock offset",
            "times at a regular rate do not show it; name an id that names single rows, or with values= a quantity that "
            "both measure",
        )
        return False
    ids = (None, None)
    if pair.shape == "many" and pair.coded is not None:
        ids = (pair.coded.left[ours.valid], pair.coded.right[theirs.valid])
    lag = event_lag(left, right, *ids)
    if not lag.sure(pair.settings.peak):
        pair.skip(
            "clock offset",
            "the pattern of the rows' times does not show it (too few rows, or other events); name an "
            "id that names single rows, or with values= a quantity that both measure",
        )
        return False
    found = follow(np.sort(left), np.sort(right), lag, pair.settings.interval_z, pair.slack)
    if found is None or found[1] < pair.settings.follow:
        if found is None:
            half = lag.width / 2
            clocks = Clocks(0, lag.lag, lag.lag - half, lag.lag + half, 0.0, -math.inf, math.inf, 0.0, half)
            pair.clocks = clocks
            _judge(pair, clocks, 0, None)
            return True
        pair.skip("clock offset", f"only {found[1]:.0%} of the rows fall together at the best lag")
        return False
    pair.clocks = found[0]
    _judge(pair, found[0], 0, None)
    return True


def _by_values(pair: Pair, ours: Clock, theirs: Clock) -> bool:
    """Compare clocks by a quantity that both sources measure."""
    assert pair.left.values is not None and pair.right.values is not None
    left, right = ours.ns[ours.valid], theirs.ns[theirs.valid]
    steps = [np.diff(np.sort(t)) for t in (left, right)]
    step = max((int(np.median(s[s > 0])) for s in steps if np.any(s > 0)), default=0)
    if not step:
        pair.skip("clock offset", "fewer than two different times in one of the sources")
        return False
    lag = signal_lag(left, pair.left.values[ours.valid], right, pair.right.values[theirs.valid], step)
    if not lag.sure(pair.settings.peak):
        pair.skip("clock offset", "the values of the two sources do not agree clearly at any one lag")
        return False
    half = max(lag.width, float(step)) / 2
    pair.clocks = Clocks(0, lag.lag, lag.lag - half, lag.lag + half, 0.0, -math.inf, math.inf, 0.0, half)
    _judge(pair, pair.clocks, 0, None)
    return True


def _judge(pair: Pair, clocks: Clocks, grain: int, apart: np.ndarray[Any, Any] | None) -> None:
    """Name what the estimates mean: at most one of step, zone, drift and offset, or a scatter beyond the tolerance."""
    slack = max(pair.settings.zone_slack_s * 1e9, min(pair.slack, HOUR / 12))
    if clocks.steps:
        found = _steps(pair, clocks, slack)
    else:
        found = _zone(pair, clocks, slack) or _drift(pair, clocks)
        found = _offset(pair, clocks, grain, found) or found
    if not found:
        _mixed_zones(pair, clocks)
        _scatter(pair, clocks, grain, apart)


def _figures(clocks: Clocks) -> dict[str, object]:
    return {
        "offset_s": clocks.offset / 1e9,
        "offset_low_s": clocks.low / 1e9,
        "offset_high_s": clocks.high / 1e9,
        "jitter_s": clocks.jitter / 1e9,
        "pairs": clocks.pairs,
    }


def _where(clocks: Clocks) -> str:
    return f"in {clocks.pairs:,} matched rows" if clocks.pairs else "where the two agree best"


def _ahead(offset: float) -> str:
    return "ahead of" if offset > 0 else "behind"


def _steps(pair: Pair, clocks: Clocks, slack: float) -> bool:
    column = pair.right.roles.time or ""
    facts = {
        **_figures(clocks),
        "levels_s": [level / 1e9 for level in clocks.levels],
        "jumps_s": [step.jump / 1e9 for step in clocks.steps],
        "jump_after": [str(np.datetime64(step.after, "ns").astype("datetime64[s]")) for step in clocks.steps],
    }
    sizes = ", ".join(show(step.jump) for step in clocks.steps[:4])
    when = ", ".join(_day(step.after, step.before) for step in clocks.steps[:4])
    if all(calendar.saving_step(step.jump, slack) for step in clocks.steps) and clocks.jitter < HOUR / 12:
        pair.report(
            "dst",
            Severity.ERROR,
            Confidence.DEFINITE,
            f"the clock of {pair.right.name} jumps by {sizes} against {pair.left.name} (on {when}): one of the two "
            f"keeps local time with daylight saving",
            "attach the zone where the local times are read (tz_localize('Europe/…') or replace_time_zone), convert to UTC, "
            "and join on that",
            column,
            {**facts, "cause": "daylight saving"},
        )
        return True
    told = pair.tolerance is not None
    pair.report(
        "step",
        Severity.WARNING if told else Severity.INFO,
        Confidence.PROBABLE,
        f"the clock of {pair.right.name} jumps by {sizes} against {pair.left.name} (on {when})",
        "correct each stretch by its own offset, and look at that date for a restart, a new device or a time server",
        column,
        facts,
    )
    return told


def _day(after: int, before: int) -> str:
    return str(np.datetime64((after + before) // 2, "ns").astype("datetime64[D]"))


def _zone(pair: Pair, clocks: Clocks, slack: float) -> bool:
    zone = calendar.zone_offset(clocks.offset, slack)
    accepted = pair.tolerance is not None and abs(clocks.offset) <= pair.tolerance
    if zone is None or accepted or clocks.jitter > min(pair.settings.coupled * abs(clocks.offset), HOUR / 20):
        return False
    # no zone in use differs from UTC by an odd quarter of an hour but Nepal's, Eucla's and the Chathams'
    common = zone % (HOUR // 2) == 0
    sure = common or pair.tolerance is not None
    kinds = _zones(pair)
    pair.report(
        "zone",
        Severity.ERROR if sure else Severity.INFO,
        Confidence.DEFINITE if common and clocks.pairs else Confidence.PROBABLE,
        f"the clock of {pair.right.name} stands {show(abs(zone))} {_ahead(zone)} that of {pair.left.name} "
        f"{_where(clocks)} (measured {clocks.offset / 1e9:.3f} s): a time zone is missing or counted twice{kinds[0]}",
        "attach the zone where each time is read (tz_localize, replace_time_zone), convert both to UTC, and store "
        "timestamps with a zone",
        pair.right.roles.time or "",
        {**_figures(clocks), "zone_hours": zone / HOUR, "zones": kinds[1]},
    )
    return True


def _zones(pair: Pair) -> tuple[str, list[str]]:
    assert pair.left.clock is not None and pair.right.clock is not None
    names = [
        "epoch" if clock.aware is None else clock.zone or "UTC" if clock.aware else "none"
        for clock in (pair.left.clock, pair.right.clock)
    ]
    told = {"epoch": "numbers since 1970", "none": "no zone"}
    a, b = (told.get(name, f"zone {name}") for name in names)
    return (f"; as stored: {a} and {b}", names)


def _mixed_zones(pair: Pair, clocks: Clocks | None) -> None:
    """One column names instants and the other does not, and nothing else is wrong with them."""
    assert pair.left.clock is not None and pair.right.clock is not None
    if {pair.left.clock.aware, pair.right.clock.aware} != {True, False}:
        return
    bare = pair.left if pair.left.clock.aware is False else pair.right
    if bare.clock is not None and bare.clock.grain == DAY:
        return
    agree = clocks is not None and abs(clocks.offset) < HOUR / 8
    pair.report(
        "naive-aware",
        Severity.INFO,
        Confidence.DEFINITE if agree else Confidence.POSSIBLE,
        f"`{bare.roles.time}` of {bare.name} has no zone and that of the other source has one"
        + ("; the two agree if it holds UTC" if agree else ""),
        "attach the zone to the column (tz_localize('UTC'), replace_time_zone('UTC')): joins refuse to mix the two",
        bare.roles.time or "",
        {"source": bare.name, "zones": _zones(pair)[1]},
    )


def _drift(pair: Pair, clocks: Clocks) -> bool:
    least = abs(clocks.moved_least)
    if abs(clocks.drift) > _FASTEST:
        return False
    if least <= pair.slack or (pair.tolerance is None and clocks.jitter > pair.settings.coupled * least):
        return False
    ppm = clocks.drift * 1e6
    pair.report(
        "drift",
        Severity.WARNING,
        Confidence.DEFINITE if least > 2 * pair.slack and clocks.jitter < least else Confidence.PROBABLE,
        f"the clock of {pair.right.name} {'gains' if ppm > 0 else 'loses'} {abs(ppm):.3g} ppm "
        f"({show(abs(clocks.drift) * DAY)} a day) on that of {pair.left.name}: {show(abs(clocks.moved))} over the "
        f"{show(clocks.span)} of {clocks.pairs:,} matched rows",
        "synchronise the device (NTP, PTP), and correct the rows already recorded by the line offset = "
        f"{clocks.offset / 1e9:.6g} s + {clocks.drift:.6g} × (time − middle of the period)",
        pair.right.roles.time or "",
        {
            **_figures(clocks),
            "drift_ppm": ppm,
            "drift_low_ppm": clocks.drift_low * 1e6,
            "drift_high_ppm": clocks.drift_high * 1e6,
            "moved_s": clocks.moved / 1e9,
            "span_s": clocks.span / 1e9,
        },
    )
    return True


def _offset(pair: Pair, clocks: Clocks, grain: int, found: bool) -> bool:
    """A constant offset beyond the tolerance, that neither a zone, nor a drift, nor cut-off times explain."""
    least = abs(clocks.offset_least)
    if pair.tolerance is None:
        tight = clocks.jitter <= pair.settings.coupled * abs(clocks.offset)
        if found or not clocks.pairs or least <= pair.slack or not tight or abs(clocks.offset) > calendar.WIDEST:
            return False
    else:
        if clocks.jitter > max(pair.tolerance, pair.settings.coupled * abs(clocks.offset)):
            return False
        explained = grain if grain else abs(clocks.moved) / 2 if found else 0.0
        if least <= pair.tolerance + explained or (found and calendar.zone_offset(clocks.offset, HOUR / 12)):
            return False
    told = pair.tolerance is not None
    days = round(clocks.offset / DAY)
    whole = days != 0 and abs(clocks.offset - days * DAY) <= pair.settings.zone_slack_s * 1e9
    pair.report(
        "offset",
        Severity.WARNING if told else Severity.INFO,
        Confidence.DEFINITE if told and clocks.pairs else Confidence.PROBABLE,
        f"the clock of {pair.right.name} stands {show(abs(clocks.offset))} {_ahead(clocks.offset)} that of "
        f"{pair.left.name} {_where(clocks)} (between {show(clocks.low)} and {show(clocks.high)}"
        + (f"; tolerance {show(pair.tolerance)})" if pair.tolerance is not None else ")")
        + (", a whole number of days" if whole else ""),
        f"subtract {clocks.offset / 1e9:.6g} s from `{pair.right.roles.time}` of {pair.right.name}, or give the delay "
        "that is meant, and synchronise the clocks (NTP, PTP)",
        pair.right.roles.time or "",
        _figures(clocks),
    )
    return told


def _scatter(pair: Pair, clocks: Clocks, grain: int, apart: np.ndarray[Any, Any] | None) -> None:
    """Matched rows further apart than the tolerance though the clocks agree on average."""
    if apart is None:
        return
    if pair.tolerance is None:
        if clocks.jitter > HOUR / 60:
            pair.skip(
                "clock offset",
                f"the times of matched rows scatter by {show(clocks.jitter)}: they seem to be times of different events",
            )
        return
    share = float(np.mean(apart > pair.tolerance + grain))
    if share <= pair.settings.outside:
        return
    pair.report(
        "scatter",
        Severity.WARNING,
        Confidence.DEFINITE,
        f"{share:.1%} of {len(apart):,} matched rows lie further apart in time than the tolerance of "
        f"{show(pair.tolerance)} (median offset {show(clocks.offset)}, scatter {show(clocks.jitter)})",
        "if both columns are meant to hold the time of the same event, look for delays in one of them (ingestion time "
        "in place of event time); otherwise give a tolerance that covers the delay",
        pair.right.roles.time or "",
        {**_figures(clocks), "outside": share},
    )
