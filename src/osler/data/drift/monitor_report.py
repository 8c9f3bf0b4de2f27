"""What a drift monitor has seen, as a report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report, Series, Table
from osler.data.drift.panes import EventClock, text
from osler.data.drift.verdicts import Resample

if TYPE_CHECKING:
    from osler.data.drift.monitor import DriftMonitor

RULE = "feature-drift"
_SHOWN = 50  # windows in the table


def report(m: DriftMonitor) -> Report:
    """The report of a monitor: a finding for every column that fresh samples were asked for."""
    out = Report(
        subject={
            "kind": "check",
            "check": "monitor",
            "reference": m.reference.name,
            "reference_rows": m.reference.rows,
            "rows": m.rows,
            "window": m.length / 1e9 if m.timed else m.length,
            "every": m.step / 1e9 if m.timed else m.step,
            "unit": "seconds" if m.timed else "rows",
            "windows": m.index,
        }
    )
    last: dict[str, Resample] = {}
    count: dict[str, int] = {}
    first: dict[str, int] = {}
    for event in m.triggers:
        for name in event.columns:
            last[name] = event
            count[name] = count.get(name, 0) + 1
            first.setdefault(name, event.window.index)
    for name, event in last.items():
        out.findings.append(_finding(m, name, event, first[name], count[name]))
    _not_checked(m, out)
    _windows(m, out)
    return out


def _finding(m: DriftMonitor, name: str, event: Resample, first: int, count: int) -> Finding:
    window = event.window
    effects = {index: values.get(name, 0.0) for index, values in m.effects}
    evidence: dict[str, object] = {"reason": event.reason, "window": window.span}
    if event.reason == "run":
        size = effects.get(window.index)
        told = f", by {size:.2f} in the last of them" if size is not None else ""
        message = f"{name} drifted in {event.run} windows in a row{told} ({window.span})."
        evidence |= {"run": event.run, "effect": size}
    else:
        assert m.sequential is not None
        test = m.sequential.tests[name]
        bound = m.sequential.alpha
        message = (
            f"The sequential test of {name} alarmed by {window.span}: rows are no longer drawn like the reference "
            f"(e-value {_power(test.log_peak)}, alarm from {_power(m.sequential.log_threshold)})."
        )
        evidence |= {"log10_e": test.log_peak / math.log(10), "alpha": bound}
    return Finding(
        rule=RULE,
        severity=Severity.WARNING,
        confidence=Confidence.DEFINITE if event.reason == "run" and m.length == m.step else Confidence.PROBABLE,
        message=message,
        where=Where(column=name),
        evidence=evidence,
        fix=(
            f"Look at the source of {name} first: a changed unit, code or feed is mended there. If the change is real, draw "
            "and label fresh samples, and check the model on them."
        ),
        first_step=first,
        last_step=window.index,
        count=count,
        touches=frozenset({f"column:{name}"}),
    )


def _power(log: float) -> str:
    """`3.2e+07` for an e-value that may not fit a float."""
    exponent = math.floor(log / math.log(10))
    return f"{math.exp(log - exponent * math.log(10)):.1f}e{exponent:+d}"


def _not_checked(m: DriftMonitor, out: Report) -> None:
    if not any(v.judged for v in m.verdicts):
        out.not_checked.append(NotChecked(RULE, "no window was judged so far"))
    skipped = [v for v in m.verdicts if not v.judged]
    for verdict in skipped[-3:]:
        out.not_checked.append(NotChecked(f"window {verdict.span}", verdict.why, is_rule=False))
    if m.left_over is not None:
        out.not_checked.append(NotChecked(f"window {m.left_over.span}", m.left_over.why, is_rule=False))
    if len(skipped) > 3:
        out.not_checked.append(NotChecked(f"{len(skipped) - 3} earlier windows", "too few rows", is_rule=False))
    if isinstance(m.clock, EventClock):
        for rows, why in (
            (m.clock.late, "they came after their window was closed"),
            (m.clock.ahead, "their time lies far ahead of the rest of their batch"),
            (m.clock.untimed, "they have no time"),
        ):
            if rows:
                out.not_checked.append(NotChecked(f"{rows} rows", why, is_rule=False))
    for name, rows in m.unusable.items():
        why = f"absent or of another kind in {rows} rows; counted as missing"
        out.not_checked.append(NotChecked(f"column {name}", why, is_rule=False))
    if m.dropped_panes:
        why = f"more than {m.settings.monitor.max_panes} panes were held (`monitor.max_panes`)"
        out.not_checked.append(NotChecked(f"{m.dropped_panes} panes", why, is_rule=False))


def _windows(m: DriftMonitor, out: Report) -> None:
    rows: list[list[str | int | float | bool | None]] = []
    effects = dict(m.effects)
    for v in [*m.verdicts, *([m.left_over] if m.left_over else [])][-_SHOWN:]:
        largest = max(effects.get(v.index, {}).values(), default=None)
        start, end = (text(v.start), text(v.end)) if v.timed else (v.start, v.end)
        run = max(v.runs.values(), default=0)
        rows.append([v.index, start, end, v.rows, v.judged, ", ".join(v.drifted), run, largest, ", ".join(v.resample)])
    columns = ["window", "start", "end", "rows", "judged", "drifted", "run", "largest effect", "asked for samples"]
    out.tables.append(
        Table("windows", columns, rows, "the last windows, oldest first; the end is not part of a window")
    )
    if m.effects:
        names = list(m.reference.columns)
        steps = [index for index, _ in m.effects]
        values: list[list[float | None]] = [[e.get(name) for name in names] for _, e in m.effects]
        out.series.append(Series("drift", "heatmap", steps, values, rows=names, unit="distance"))
