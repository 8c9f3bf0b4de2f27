"""The report of a comparison: findings, the table of features, histograms, curves, and what was not judged."""

from __future__ import annotations

import math

import numpy as np

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report, Series, Table
from osler.core.settings import Settings
from osler.core.settings.drift import Drift
from osler.data.drift import summary, words
from osler.data.drift.categorical import Categories, aligned
from osler.data.drift.grid import Grid
from osler.data.drift.judge import DRIFT, NOT_JUDGED, STEADY, ColumnVerdict
from osler.data.drift.profile import ColumnState, Profile
from osler.data.drift.windows import Onset, Recent, Windows

RULE = "feature-drift"

COLUMNS = [
    "column", "kind", "verdict", "p", "KS", "KS at most", "W in spreads", "W at most", "PSI", "JS", "unseen",
    "missing before", "missing now", "infinite before", "infinite now", "shift", "spread ratio",
    "outside range", "values before", "values now",
]  # fmt: skip


def report(
    reference: Profile,
    current: Profile,
    verdicts: list[ColumnVerdict],
    settings: Settings,
    windows: Windows | None = None,
    onsets: dict[str, Onset] | None = None,
    recent: dict[str, Recent] | None = None,
) -> Report:
    """Everything there is to say about a comparison."""
    drift = settings.drift
    result = Report(
        subject={
            "kind": "check",
            "check": "drift",
            "reference": reference.name,
            "current": current.name,
            "rows": current.rows,
            "reference_rows": reference.rows,
        }
    )
    verdicts = sorted(verdicts, key=_rank)
    for verdict in verdicts:
        before, now = reference.columns[verdict.name], current.columns[verdict.name]
        late = (recent or {}).get(verdict.name)
        if late is not None:
            result.findings.append(_finding(*late, drift, windows, (onsets or {}).get(verdict.name)))
        elif verdict.verdict == DRIFT:
            result.findings.append(_finding(verdict, before, now, drift, windows, (onsets or {}).get(verdict.name)))
        if verdict.why:
            result.not_checked.append(NotChecked(f"column {verdict.name!r}", verdict.why, is_rule=False))
    result.findings += [_changed(name, *kinds) for name, kinds in current.changed.items()]
    _missing_columns(result, current)
    result.tables.append(_table(verdicts, reference, current))
    for verdict in _drawn(verdicts, drift):
        series = histogram(verdict, reference.columns[verdict.name], current.columns[verdict.name], drift.bars)
        if series is not None:
            result.series.append(series)
    for name, onset in (onsets or {}).items():
        result.series.append(_curve(name, onset))
    result.notes += [*reference.notes, *(n for n in current.notes if n not in reference.notes)]
    for verdict in verdicts:
        if verdict.rounding(drift) and verdict.verdict == STEADY:
            result.notes.append(
                f"column {verdict.name!r}: most of its KS distance of {verdict.ks.low if verdict.ks else 0:.3f} goes away when "
                f"values may move by {drift.rounding:g} of its spread, as rounding does; it is not counted as drift"
            )
    if windows is not None:
        _window_notes(result, windows)
    return result


def _rank(verdict: ColumnVerdict) -> tuple[int, float]:
    group = {DRIFT: 0, NOT_JUDGED: 2}.get(verdict.verdict, 1)
    effect = max(verdict.ks.low if verdict.ks else 0.0, verdict.js or 0.0)
    return group, -effect


def _finding(
    verdict: ColumnVerdict,
    before: ColumnState,
    now: ColumnState,
    drift: Drift,
    windows: Windows | None,
    onset: Onset | None,
) -> Finding:
    """The finding of a verdict on these two states: of all the current data, or of its last window."""
    evidence: dict[str, object] = {
        "reasons": list(verdict.reasons),
        "p_adjusted": verdict.p,
        "values": list(verdict.values),
        "rows": list(verdict.rows),
    }
    if verdict.ks is not None:
        evidence |= {"ks": verdict.ks.low, "ks_at_most": verdict.ks.high}
    if verdict.wasserstein is not None:
        at_most = verdict.wasserstein.high / verdict.spread if verdict.spread > 0 else None
        evidence |= {"wasserstein_spreads": verdict.moved, "wasserstein_spreads_at_most": at_most}
    for name in ("psi", "js", "unseen"):
        if getattr(verdict, name) is not None:
            evidence[name] = getattr(verdict, name)
    evidence |= {"missing": list(verdict.missing)}
    if any(verdict.infinite):
        evidence["infinite"] = list(verdict.infinite)
    if before.grid is not None and now.grid is not None:
        evidence |= words.moves(before.grid, now.grid)
    text = words.message(verdict, before, now, drift)
    first = None
    if onset is not None and windows is not None:
        evidence |= {"windows_judged": len(onset.judged), "windows_out": sum(onset.out)}
        if onset.begin is not None:
            first = onset.judged[onset.begin]
            since = windows.begin_of(first)
            evidence |= {"since_window": first, "since": since, "windows_in_a_row": onset.run}
            text += f"; out since {since}, {onset.run} windows in a row"
    return Finding(
        rule=RULE,
        severity=Severity.WARNING,
        confidence=Confidence.PROBABLE,
        message=text,
        where=Where(column=verdict.name),
        evidence=evidence,
        fix=words.fix(verdict),
        touches=frozenset({f"column:{verdict.name}"}),
    )


def _changed(name: str, was: object, is_: object) -> Finding:
    before, now = getattr(was, "value", was), getattr(is_, "value", is_)
    return Finding(
        rule=RULE,
        severity=Severity.WARNING,
        confidence=Confidence.DEFINITE,
        message=f"{name!r} changed its kind from {before} to {now}, so its values cannot be compared",
        where=Where(column=name),
        evidence={"reasons": ["kind"], "kind_before": before, "kind_now": now},
        fix=f"Read {name!r} with the type it had in the reference; where values do not fit it, find what writes them.",
        touches=frozenset({f"column:{name}"}),
    )


def _missing_columns(result: Report, current: Profile) -> None:
    for name in current.absent:
        result.not_checked.append(
            NotChecked(f"column {name!r}", f"the reference has it, {current.name} does not", is_rule=False)
        )
    for name in current.extra:
        result.not_checked.append(
            NotChecked(f"column {name!r}", f"{current.name} has it, the reference does not", is_rule=False)
        )
    if current.absent:
        shown = ", ".join(map(repr, current.absent[:5])) + (" …" if len(current.absent) > 5 else "")
        result.notes.append(f"{current.name} lacks {len(current.absent)} columns of the reference: {shown}")


def _table(verdicts: list[ColumnVerdict], reference: Profile, current: Profile) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    for v in verdicts:
        before, now = reference.columns[v.name].grid, current.columns[v.name].grid
        moved = words.moves(before, now) if before is not None and now is not None else {}
        far = v.wasserstein.high / v.spread if v.wasserstein is not None and v.spread > 0 else v.moved
        numbers = before is not None
        rows.append(
            [
                v.name,
                v.kind.value,
                ", ".join(v.reasons) if v.reasons else v.verdict,
                v.p,
                v.ks.low if v.ks else None,
                v.ks.high if v.ks else None,
                v.moved,
                far,
                v.psi,
                v.js,
                v.unseen,
                v.missing[0],
                v.missing[1],
                v.infinite[0] if numbers else None,
                v.infinite[1] if numbers else None,
                moved.get("shift"),
                moved.get("spread_ratio"),
                moved.get("outside"),
                v.values[0],
                v.values[1],
            ]
        )
    return Table(
        "features",
        list(COLUMNS),
        rows,
        "The exact KS and Wasserstein distances lie between the number and its `at most`; p is after Holm's correction "
        "over all columns and tests.",
    )


def _drawn(verdicts: list[ColumnVerdict], drift: Drift) -> list[ColumnVerdict]:
    moved = [v for v in verdicts if v.verdict == DRIFT]
    return moved + [v for v in verdicts if v.verdict != DRIFT][: drift.histograms]


def histogram(verdict: ColumnVerdict, before: ColumnState, now: ColumnState, bars: int) -> Series | None:
    """Shares of both sides over the same bins; None where a side has no values."""
    if isinstance(before.state, Grid) and isinstance(now.state, Grid):
        return _numbers(verdict.name, before.state, now.state, bars)
    if isinstance(before.state, Categories) and isinstance(now.state, Categories):
        return _categories(verdict.name, before.state, now.state, bars)
    return None


def _numbers(name: str, before: Grid, now: Grid, bars: int) -> Series | None:
    if before.n == 0 or now.n == 0:
        return None
    ends = [summary.quantiles(g, np.array([0.005, 0.995])) for g in (before, now)]
    low, high = float(min(e[0] for e in ends)), float(max(e[1] for e in ends))
    if not (math.isfinite(high - low) and high > low):
        low, high = (low, math.nextafter(low, math.inf)) if high <= low else (low / 4, high / 4)
    edges = np.linspace(low, high, bars + 1)
    if not (np.diff(edges) > 0).all():
        edges = np.array([low, high])
    return Series(
        name,
        "histogram",
        [],
        [summary.histogram(before, edges).tolist(), summary.histogram(now, edges).tolist()],
        rows=["reference", "current"],
        edges=edges.tolist(),
        unit="share",
    )


def _categories(name: str, before: Categories, now: Categories, bars: int) -> Series | None:
    if before.n == 0 or now.n == 0:
        return None
    keys, (one, two) = aligned((before, now))
    p, q = one / before.n, two / now.n
    order = sorted(range(len(keys)), key=lambda i: -max(p[i], q[i]))[: bars - 1]
    order.sort()
    named = words.labels(before, now)
    values: list[list[float | None]] = [[float(side[i]) for i in order] for side in (p, q)]
    text = [named[keys[i]] for i in order]
    if len(keys) > len(order) or before.other or now.other:
        text.append("other")
        for shares, side in zip(values, (p, q)):
            shares.append(max(0.0, 1.0 - float(side[order].sum())))
    return Series(name, "histogram", [], values, rows=["reference", "current"], labels=text, unit="share")


def _curve(name: str, onset: Onset) -> Series:
    return Series(f"drift of {name}", "curve", list(range(len(onset.curve))), list(onset.curve), unit="distance")


def _window_notes(result: Report, windows: Windows) -> None:
    if windows.count:
        begin, end = windows.begin_of(0), windows.begin_of(windows.count - 1)
        result.notes.append(f"{windows.count} windows, the first beginning at {begin}, the last at {end}")
    if windows.untimed:
        result.notes.append(f"{windows.untimed} rows without a time are in no window")
