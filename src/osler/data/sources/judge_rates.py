"""Sources sampled at different rates, with gaps, or with rows out of order."""

from __future__ import annotations

import numpy as np

from osler.core.finding import Confidence, Finding, Severity
from osler.core.settings import Sources
from osler.data.sources.durations import show
from osler.data.sources.estimate import Times
from osler.data.sources.ids import Rows, Tally
from osler.data.sources.pair import Pair, finding
from osler.data.sources.rates import Arrival, Rate, arrival_of, rate_of
from osler.data.sources.read import Stream


def measure(
    stream: Stream, counted: Tally | None, series: bool, copies: Rows, slack: float, settings: Sources
) -> tuple[Rate, Arrival]:
    """The rate and the order of arrival of a source with times; of each series where ids name series.

    Args:
        counted: its ids. series: whether they name series.
        copies: rows that repeat an earlier one: when they arrived says nothing.
        slack: ns of lateness that is no lateness.
    """
    clock = stream.clock
    assert clock is not None
    if counted is None or not series:
        counts = clock.valid.copy()
        counts[copies] = False
        rows = np.flatnonzero(counts)
        times = clock.ns[rows]
        arrival = arrival_of(times, rows, slack)
        ascending = np.sort(times) if arrival.late else times
        return rate_of(ascending, None, settings.gap), arrival
    order = counted.order
    known = clock.valid[order]
    fresh = np.zeros(len(order), bool)
    fresh[counted.starts] = True
    which = np.cumsum(fresh)[known]
    rows, times = order[known], clock.ns[order][known]
    new = np.ones(len(which), bool)
    np.not_equal(which[1:], which[:-1], out=new[1:])
    late = (times[1:] < times[:-1]) & ~new[1:]
    arrival = _late_in_series(times, rows, which, slack) if late.any() else Arrival(0, 0, 0.0, -1, len(rows))
    if late.any():
        times = times[np.lexsort((times, which))]
    return rate_of(times, new, settings.gap), arrival


def _late_in_series(times: Times, rows: Rows, which: Rows, slack: float) -> Arrival:
    """Lateness within each series: ranks of times, lifted by the series' number, keep one running maximum apart."""
    order = np.argsort(times, kind="stable")
    fresh = np.ones(len(times), bool)
    ascending = times[order]
    np.not_equal(ascending[1:], ascending[:-1], out=fresh[1:])
    rank = np.empty(len(times), np.int64)
    rank[order] = np.cumsum(fresh) - 1
    lifted = np.maximum.accumulate(rank + which.astype(np.int64) * len(times))
    newest = ascending[np.flatnonzero(fresh)][lifted - which.astype(np.int64) * len(times)]
    lateness = newest - times
    late = lateness > 0
    return Arrival(
        int(np.count_nonzero(late)), int(np.count_nonzero(lateness > slack)), float(lateness.max()),
        int(rows[late].min()), len(times),
    )  # fmt: skip


def judge_arrival(
    stream: Stream, arrival: Arrival, tolerance: int | None, by_time: bool, settings: Sources
) -> list[Finding]:
    """Rows that come later than the tolerance after newer ones.

    Args:
        by_time: whether the sources can only be joined by time: where ids name rows, their order does not matter.
    """
    if not arrival.late or not arrival.in_order:
        return []
    share = arrival.beyond / arrival.rows
    warns = by_time and tolerance is not None and share >= settings.late
    if not warns and arrival.late / arrival.rows < settings.late:
        return []
    beyond = f", {arrival.beyond:,} of them by more than {show(tolerance)}" if tolerance is not None else ""
    return [
        finding(
            Severity.WARNING if warns else Severity.INFO,
            Confidence.DEFINITE,
            f"{arrival.late:,} of {arrival.rows:,} rows of {stream.name} are older than a row before them{beyond} "
            f"(at most {show(arrival.longest)}, first in row {arrival.first:,})",
            "sort by time before an as-of join; in a streaming join set the watermark to the lateness that is to be "
            "waited for, and count the rows behind it",
            stream.roles.time or "",
            {
                "kind": "out-of-order",
                "source": stream.name,
                "count": arrival.late,
                "beyond_tolerance": arrival.beyond,
                "of": arrival.rows,
                "longest_s": arrival.longest / 1e9,
                "first_rows": [arrival.first],
            },
        )
    ]


def judge_declared(stream: Stream, rate: Rate, declared: float, settings: Sources) -> list[Finding]:
    """A source that is not sampled as declared.

    Args:
        declared: interval, ns.
    """
    if not rate.regular(settings.regular) or abs(rate.interval / declared - 1) <= settings.rate_error:
        return []
    return [
        finding(
            Severity.WARNING,
            Confidence.DEFINITE,
            f"{stream.name} has a row every {show(rate.interval)} ({rate.hertz:.4g} Hz), not every {show(declared)} "
            f"({1e9 / declared:.4g} Hz) as declared",
            "correct the declared rate, or look at the device's configuration and at rows dropped on the way",
            stream.roles.time or "",
            {
                "kind": "rate",
                "source": stream.name,
                "interval_s": rate.interval / 1e9,
                "declared_s": declared / 1e9,
                "ratio": rate.interval / declared,
            },
        )
    ]


def judge_rates(pair: Pair, ours: Rate, theirs: Rate, declared: bool) -> None:
    """Two sources sampled at different rates, unless both rates are declared."""
    if pair.shape not in ("none", "many"):
        return
    _gaps(pair, ours, theirs)
    for rate, stream in ((ours, pair.left), (theirs, pair.right)):
        if not rate.regular(pair.settings.regular):
            if rate.count:
                why = (
                    f"{stream.name} is not sampled at a rate: its intervals spread by {rate.spread:.2f} of their median"
                )
                pair.skip("rates", why)
            return
    ratio = theirs.interval / ours.interval
    if declared or max(ratio, 1 / ratio) < pair.settings.rate_ratio:
        return
    slow, fast = (pair.right, pair.left) if ratio > 1 else (pair.left, pair.right)
    times = max(ratio, 1 / ratio)
    pair.report(
        "rate",
        Severity.WARNING,
        Confidence.DEFINITE,
        f"{fast.name} has a row every {show(min(ours.interval, theirs.interval))} and {slow.name} every "
        f"{show(max(ours.interval, theirs.interval))}: {times:.3g} rows of {fast.name} for each of {slow.name}",
        f"bring both to one rate before joining: aggregate {fast.name} over {show(max(ours.interval, theirs.interval))} "
        "(mean, last), or take the latest slow row by an as-of join; if it is meant, declare it with rates=",
        pair.right.roles.time or "",
        {
            "interval_s": [ours.interval / 1e9, theirs.interval / 1e9],
            "hertz": [ours.hertz, theirs.hertz],
            "ratio": ratio,
            "spread": [ours.spread, theirs.spread],
            "gaps": [ours.gaps, theirs.gaps],
        },
    )


def _gaps(pair: Pair, ours: Rate, theirs: Rate) -> None:
    for mine, other, stream in ((ours, theirs, pair.left), (theirs, ours, pair.right)):
        if not mine.regular(pair.settings.regular) or mine.lost <= pair.settings.missing or other.lost > mine.lost / 2:
            continue
        pair.report(
            "gaps",
            Severity.INFO,
            Confidence.DEFINITE,
            f"{stream.name} has {mine.gaps:,} gaps that make up {mine.lost:.0%} of its time (the longest {show(mine.longest)}, "
            f"usual interval {show(mine.interval)}), and the other source has rows there",
            "give the as-of join a tolerance of a few intervals, so that rows within a gap stay without a partner",
            stream.roles.time or "",
            {"source": stream.name, "gaps": mine.gaps, "lost": mine.lost, "longest_s": mine.longest / 1e9},
        )
