"""Order in time within one source: steps back, repeats, mixed zones and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked
from osler.core.settings.splits import Splits
from osler.data.splits.instants import Instants, in_words
from osler.data.splits.wording import count, listed_rows, share

_HOUR = 3600 * 10**9
_DAY = 24 * _HOUR
_1990 = 631_152_000 * 10**9
_FEBRUARY_1970 = 60 * _DAY


def check_order(side: str, name: str, instants: Instants, settings: Splits) -> tuple[list[Finding], list[NotChecked]]:
    """time-not-monotonic in one source, in the order of its rows, within each group.

    Args:
        side: `training` or `evaluation`.
        name: the time column.
        instants: its values.
        settings: thresholds.
    """
    findings = [*_mixed(side, name, instants), *_epoch(side, name, instants, settings)]
    missed: list[NotChecked] = []
    lost = int((~instants.valid).sum())
    if lost:
        missed.append(
            NotChecked("time-not-monotonic", f"{count(lost, 'row')} of {side} {'has' if lost == 1 else 'have'} no time")
        )
    if len(instants.units) > 1:
        return findings, [*missed, NotChecked("time-not-monotonic", f"the order of {side}: its times mix units")]
    rows, steps = _steps(instants)
    if not steps.size:
        return findings, missed
    back, zero = steps < 0, steps == 0
    ahead = steps[steps > 0]
    usual = float(np.median(ahead)) if ahead.size else 0.0
    regular = bool(ahead.size) and float((ahead == usual).mean()) >= settings.regular_share
    where, touches = Where(column=name), frozenset({f"column:{name}"})
    backs, repeats = int(back.sum()), int(zero.sum())
    if backs and not ahead.size:
        findings.append(
            Finding(
                "time-not-monotonic",
                Severity.INFO,
                Confidence.DEFINITE,
                f"{side.capitalize()} runs from the newest row to the oldest in column {name}.",
                where,
                {"side": side, "steps_back": backs, "steps": steps.size},
                "Sort by time, ascending, before you make lags or windows or cut the data by position.",
                touches=touches,
            )
        )
    elif backs > settings.back_share * steps.size:
        findings.append(
            Finding(
                "time-not-monotonic",
                Severity.INFO,
                Confidence.DEFINITE,
                f"The rows of {side} are in no order of {name}: {share(backs, steps.size)} of the steps go back.",
                where,
                {"side": side, "steps_back": backs, "steps": steps.size},
                "Sort by time within each series before you make lags or windows or cut the data by position.",
                touches=touches,
            )
        )
    elif backs:
        findings.append(_back(side, name, instants, rows[back], steps[back], steps.size, usual, regular, settings))
    if repeats > steps.size / 2 and not instants.grouped:
        missed.append(
            NotChecked(
                "time-not-monotonic",
                f"repeats in {side}: most rows share their time with the row before, as series side by side do; "
                "name the column that tells them apart as group",
            )
        )
    elif repeats and (regular or instants.grouped):
        fault = regular and repeats <= settings.back_share * steps.size
        autumn = not instants.numeric and not instants.aware and _is_clock_change(instants.values[rows[zero]])
        findings.append(
            Finding(
                "time-not-monotonic",
                Severity.WARNING if fault else Severity.INFO,
                Confidence.PROBABLE,
                f"{count(repeats, 'row')} of {side} {'has' if repeats == 1 else 'have'} the same {name} as the row before"
                + (" in the same group" if instants.grouped else "")
                + (
                    f", in a series with a step of {in_words(usual, instants)}"
                    + (": the hour that the end of daylight saving time repeats" if autumn else "")
                    if fault
                    else ""
                )
                + f", first at row {int(rows[zero].min())}.",
                where,
                {
                    "side": side,
                    "repeats": repeats,
                    "steps": steps.size,
                    "rows": listed_rows(rows[zero], settings),
                    "daylight_saving": autumn,
                },
                "Store times in UTC."
                if autumn
                else "Drop or merge the rows that share a time, or name the column that "
                "tells the series apart as group.",
                touches=touches,
            )
        )
    return findings, missed


def _steps(instants: Instants) -> tuple[npt.NDArray[np.int64], Any]:
    """Differences between consecutive rows of a group, and the row at which each arrives."""
    rows = np.flatnonzero(instants.valid)
    if instants.grouped:
        rows = rows[np.argsort(instants.groups[rows], kind="stable")]
    values, groups = instants.values[rows], instants.groups[rows]
    within = groups[1:] == groups[:-1]
    return rows[1:][within], np.diff(values)[within]


def _back(
    side: str,
    name: str,
    instants: Instants,
    rows: npt.NDArray[np.int64],
    steps: Any,
    total: int,
    usual: float,
    regular: bool,
    settings: Splits,
) -> Finding:
    farthest = float(-steps.min())
    # lines of a log arrive a little out of order, and nothing is wrong with it
    jitter = not regular and farthest <= 10 * usual
    landed = instants.values[rows]
    clock = (
        not instants.numeric
        and not instants.aware
        and bool((-steps <= _HOUR).all())
        and bool((-steps >= _HOUR - max(usual, 1) * 1.5).all())
        and _is_clock_change(landed)
    )
    why = (
        ", by an hour, where daylight saving time ends: the times are local and carry no zone"
        if clock
        else f", by up to {in_words(farthest, instants)}"
    )
    first = int(rows.min())
    return Finding(
        "time-not-monotonic",
        Severity.INFO if jitter else Severity.WARNING,
        Confidence.DEFINITE,
        f"{name} goes back {'once' if rows.size == 1 else f'{rows.size:,} times'} in {side}{why}, first at row {first}.",
        Where(column=name),
        {
            "side": side,
            "steps_back": int(rows.size),
            "steps": total,
            "farthest": farthest,
            "rows": listed_rows(rows, settings),
            "daylight_saving": clock,
        },
        "Store times in UTC; the repeated hour cannot be put in order afterwards without the offset."
        if clock
        else "Sort by time, and look at what was appended at these rows: a clock that was set back, or files put together "
        "in the wrong order.",
        touches=frozenset({f"column:{name}"}),
    )


def _mixed(side: str, name: str, instants: Instants) -> list[Finding]:
    where, touches = Where(column=name), frozenset({f"column:{name}"})
    found: list[Finding] = []
    if instants.aware and instants.naive:
        total = instants.aware + instants.naive
        found.append(
            Finding(
                "time-not-monotonic",
                Severity.WARNING,
                Confidence.DEFINITE,
                f"{share(instants.naive, total)} of the times in {name} of {side} have no zone and the others have one.",
                where,
                {"side": side, "with_zone": instants.aware, "without_zone": instants.naive},
                "Give every time its offset, or convert all of them to UTC where they are written.",
                touches=touches,
            )
        )
    if len(instants.units) > 1:
        most, *rest = sorted(instants.units, key=lambda u: -instants.units[u])
        odd, total = sum(instants.units[u] for u in rest), sum(instants.units.values())
        found.append(
            Finding(
                "time-not-monotonic",
                Severity.ERROR,
                Confidence.DEFINITE,
                f"{name} of {side} mixes units: {share(odd, total)} of the times count {' or '.join(rest)} since 1970, "
                f"the others {most}.",
                where,
                {"side": side, **instants.units},
                f"Convert all of them to {most}, or to timestamps, where they are written.",
                touches=touches,
            )
        )
    return found


def _epoch(side: str, name: str, instants: Instants, settings: Splits) -> list[Finding]:
    if instants.numeric or not instants.valid.any():
        return []
    values = instants.values[instants.valid]
    early = (values >= 0) & (values < _FEBRUARY_1970)
    n = int(early.sum())
    if not n or n > 0.5 * values.size or float((values >= _1990).mean()) < 0.5:
        return []
    rows = np.flatnonzero(instants.valid)[early]
    return [
        Finding(
            "time-not-monotonic",
            Severity.WARNING,
            Confidence.PROBABLE,
            f"{count(n, 'row')} of {side} lie{'s' if n == 1 else ''} at the beginning of 1970 in {name}: a 0 that stood for "
            f"no time, or seconds read as milliseconds, first at row {int(rows[0])}.",
            Where(column=name),
            {"side": side, "rows_in_1970": n, "rows": listed_rows(rows, settings)},
            "Write a missing time as null, and convert every source to one unit before joining them.",
            touches=frozenset({f"column:{name}"}),
        )
    ]


def _is_clock_change(values: Any) -> bool:
    """Whether all of these local times lie in the small hours of a Sunday in a month in which clocks change."""
    if not values.size:
        return False
    stamps = values.astype("datetime64[ns]")
    months = stamps.astype("datetime64[M]").astype(np.int64) % 12 + 1
    weekday = (stamps.astype("datetime64[D]").astype(np.int64) + 4) % 7
    hours = (values // _HOUR) % 24
    return bool((np.isin(months, (3, 4, 9, 10, 11)) & (weekday == 0) & (hours <= 3)).all())
