"""`asof_join`: an as-of join that asserts that the two sides line up, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import Report, Series, Table
from osler.core.settings import Settings
from osler.data.need import DataError, need
from osler.data.sources.durations import show
from osler.data.sources.ids import Rows
from osler.data.sources.native import Native
from osler.data.sources.pair import finding
from osler.data.sources.sides import (
    AlignmentError,
    Side,
    assert_same_time,
    order_of,
    read_sides,
    tolerance_of,
    two_names,
    without_twins,
)

_DIRECTIONS = ("backward", "forward", "nearest")
_SAMPLE = 1_000_000
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


@dataclass(slots=True)
class Aligned:
    """An as-of join that held.

    Attributes:
        table: the left rows with the right columns, of the left side's library.
        report: share matched, lags, and a finding where few rows matched.
        right_rows: int64 [left rows], the row of the right side, -1 where none matched.
        lags: [left rows], left time minus right time: int64 ns of timestamps, in their own unit of plain numbers; 0 where
            none matched.
    """

    table: Any
    report: Report
    right_rows: Rows
    lags: np.ndarray[Any, Any]

    @property
    def matched(self) -> float:
        """Share of the left rows that found a partner; 1 where there are no left rows."""
        return float(np.mean(self.right_rows >= 0)) if len(self.right_rows) else 1.0


def asof_join(
    left: object,
    right: object,
    *,
    on: str,
    by: str | Sequence[str] | None = None,
    tolerance: object = None,
    direction: str = "backward",
    require: float | None = None,
    allow_exact_matches: bool = True,
    allow_future: bool = False,
    duplicates: str = "error",
    sort: bool = False,
    keep_time: str | None = None,
    suffix: str = "_right",
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Aligned:
    """Join each left row with the right row that is nearest before it in time, and assert that the sides line up.

    As `pandas.merge_asof` and `polars.DataFrame.join_asof`, with what those leave to the caller: both times have a zone
    or neither has, both count in one unit, no time is missing, both sides ascend (within each group), no two right rows
    could match equally well, nothing comes from the future, and enough rows match.

    Args:
        left, right: pandas, polars or pyarrow frames, or whatever `open_source` takes.
        on: the time column, or `left_name=right_name`.
        by: columns that must be equal, likewise.
        tolerance: how old a value may be: `2s`, `PT1M`, a timedelta, seconds; where `on` holds plain numbers that are not
            counted from 1970, a number in their own unit.
        direction: `backward` (the last right row at or before), `forward`, `nearest`.
        require: share of left rows that must match; None only warns, below `settings.sources.join_matched`.
        allow_exact_matches: whether a right row at the very same time counts. A feature known only after the event that
            bears its time should not: set False.
        allow_future: accept right rows later than the left one, which `forward` and `nearest` would take. In features for
            a model that is leakage.
        duplicates: `error` refuses right rows with the same group and time; `last` takes the last of them.
        sort: sort both sides first; the result keeps the order of the left one.
        keep_time: name of a column that gets the right row's time.
        suffix: goes behind names of right columns that the left side has too.
        settings: the settings tree. progress: told what is being done.

    Returns:
        the joined table and its report.

    Raises:
        AlignmentError: the sides do not line up; it names the first offending row by its number.
        DataError: an unknown column, direction or duration; tolerance below 0; require outside 0 … 1.
    """
    chosen = (settings or Settings()).sources
    if direction not in _DIRECTIONS:
        raise DataError(f"direction is backward, forward or nearest, not {direction!r}")
    if duplicates not in ("error", "last"):
        raise DataError(f"duplicates is error or last, not {duplicates!r}")
    if require is not None and not 0 <= require <= 1:
        raise DataError(f"require is a share between 0 and 1, not {require}")
    if direction == "forward" and not allow_future:
        raise AlignmentError(
            "direction='forward' takes every value from the future of its row, which a model must not see: use "
            "'backward', or say allow_future=True",
            "future",
            "both",
        )
    ours, theirs = Native(left, "left"), Native(right, "right")
    on_left, on_right = two_names(on)
    groups = [two_names(name) for name in ([by] if isinstance(by, str) else by or ())]
    progress("reading", 0, 3)
    a, b = read_sides(ours, theirs, on_left, on_right, groups)
    assert_same_time(a, b)
    span = tolerance_of(tolerance, a)
    orders = [order_of(side, sort) for side in (a, b)]
    b_order = without_twins(b, orders[1], duplicates)
    progress("joining", 1, 3)
    rows = _match(a, b, orders[0], b_order, span, direction, allow_exact_matches)
    lags = _lags(a, b, rows)
    if not allow_future and (ahead := np.flatnonzero(lags < 0)).size:
        raise AlignmentError(
            f"row {ahead[0]} of the left side would get a value from its future ({_lag(-lags[ahead[0]], a)} later; "
            f"{len(ahead):,} rows in all): use direction='backward', or say allow_future=True",
            "future",
            "left",
            int(ahead[0]),
        )
    matched = float(np.mean(rows >= 0)) if len(rows) else 1.0
    if require is not None and matched < require:
        first = int(np.argmax(rows < 0))
        raise AlignmentError(
            f"{matched:.1%} of {len(rows):,} left rows found a right row, {require:.1%} are required; row {first} is the "
            f"first without one{_why(a, b, rows)}",
            "unmatched",
            "left",
            first,
        )
    progress("writing", 2, 3)
    drop = {on_right, *(name for _, name in groups)}
    columns = [name for name in theirs.columns if name not in drop]
    taken = set(ours.columns)
    names = [name + suffix if name in taken else name for name in columns]
    if keep_time is not None:
        columns, names = [on_right, *columns], [keep_time, *names]
    clash = next((n for n in names if n in taken or names.count(n) > 1), None)
    if clash is not None:
        raise DataError(f"the result would have two columns {clash!r}: choose another suffix or keep_time")
    table = ours.join(theirs, rows, columns, names)
    report = _report(a, b, rows, lags, matched, on_left, chosen.join_matched, require)
    progress("writing", 3, 3)
    return Aligned(table, report, rows, lags)


def _match(
    a: Side, b: Side, a_order: Rows | None, b_order: Rows | None, span: float | None, direction: str, exact: bool
) -> Rows:
    """For each left row the right row, -1 where there is none."""
    pl = need("polars", "data", "an as-of join")
    frames = []
    for side, order in ((a, a_order), (b, b_order)):
        if order is None and side.grouped.all():
            columns = {"t": side.times, side.name: np.arange(len(side.times))}
            groups = side.groups
        else:
            rows = order if order is not None else np.arange(len(side.times))
            rows = rows[side.grouped[rows]]
            columns = {"t": side.times[rows], side.name: rows.astype(np.int64)}
            groups = side.groups[rows] if side.groups is not None else None
        if groups is not None:
            columns["g"] = groups
        frame = pl.DataFrame(columns)
        frames.append(frame.with_columns(frame["t"].set_sorted()))
    joined = frames[0].join_asof(
        frames[1],
        on="t",
        by="g" if a.groups is not None else None,
        strategy=direction,
        tolerance=span,
        allow_exact_matches=exact,
        check_sortedness=False,
    )
    out = np.full(len(a.times), -1, np.int64)
    out[joined["left"].to_numpy()] = joined["right"].fill_null(-1).to_numpy()
    return out


def _lag(lag: float, side: Side) -> str:
    return show(lag * side.unit) if side.unit else f"{lag:.6g}"


def _lags(a: Side, b: Side, rows: Rows) -> np.ndarray[Any, Any]:
    """Left time minus right time, 0 where there is no right row."""
    if not len(b.times):
        return np.zeros_like(a.times)
    out: np.ndarray[Any, Any] = a.times - b.times[rows]
    out[rows < 0] = 0
    return out


def _why(a: Side, b: Side, rows: Rows) -> str:
    """What the rows without a partner have in common, as the end of a sentence."""
    lost = rows < 0
    if not len(b.times):
        return ": the right side is empty"
    if a.groups is not None and b.groups is not None:
        strange = lost & ~(np.isin(a.groups, b.groups[b.grouped]) & a.grouped)
        if strange.sum() > 0.5 * lost.sum():
            return f": {strange.sum():,} of them have a group that the right side lacks"
    early = lost & (a.times < b.times.min())
    if early.sum() > 0.5 * lost.sum():
        return f": {early.sum():,} of them are older than everything on the right"
    return ": the nearest right row is further away than the tolerance" if lost.any() else ""


def _report(
    a: Side,
    b: Side,
    rows: Rows,
    lags: np.ndarray[Any, Any],
    matched: float,
    column: str,
    floor: float,
    require: float | None,
) -> Report:
    every = max(1, len(rows) // _SAMPLE)
    found = lags[::every][rows[::every] >= 0].astype(np.float64) * ((a.unit / 1e9) if a.unit else 1.0)
    unit = "s" if a.unit else ""
    taken = np.zeros(len(b.times), bool)
    taken[rows[rows >= 0]] = True
    used = int(np.count_nonzero(taken))
    report = Report(
        subject={"kind": "check", "check": "asof_join", "reference": "left", "current": "right", "rows": len(rows)}
    )
    quantiles = np.quantile(found, _QUANTILES) if len(found) else np.full(len(_QUANTILES), np.nan)
    report.tables.append(
        Table(
            "as-of join",
            ["left rows", "right rows", "matched", "right rows used", *(f"lag {q:.0%}" for q in _QUANTILES)],
            [[len(rows), len(b.times), matched, used, *(float(q) if np.isfinite(q) else None for q in quantiles)]],
            f"lag: how much older the right row is{', seconds' if unit else ''}; shares of the matched rows lie at or below it"
            + (f" (every {every}th row)" if every > 1 else ""),
        )
    )
    if len(found):
        counts, edges = np.histogram(found, bins=40)
        shares = (counts / len(found)).tolist()
        report.series.append(
            Series("lag", "histogram", [], [shares], rows=["lag"], unit=unit, edges=[float(e) for e in edges])
        )
    if require is None and matched < floor:
        first = int(np.argmax(rows < 0))
        report.findings.append(
            finding(
                Severity.WARNING,
                Confidence.PROBABLE,
                f"{np.count_nonzero(rows < 0):,} of {len(rows):,} left rows found no right row "
                f"({1 - matched:.1%}, first row {first}){_why(a, b, rows)}",
                "compare the two sources with check_sources (zone, offset, ids), or give require= the share that you expect",
                column,
                {
                    "kind": "unmatched",
                    "matched": matched,
                    "count": int(np.count_nonzero(rows < 0)),
                    "first_rows": [first],
                },
            )
        )
    return report
