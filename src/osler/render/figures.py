"""Series as what the page draws, and as the table that says the same in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.core.report import Series
from osler.render import thin, words

SUMMARY_ROWS = 300


@dataclass(frozen=True, slots=True)
class Summary:
    """A line of a figure's table: the extremes and the last finite value with their steps, and what is not finite.

    All fields are text; an empty one says that there is no such value.
    """

    name: str
    low: str
    high: str
    last: str
    odd: str


@dataclass(slots=True)
class Figure:
    """A chart of the page.

    Attributes:
        name: as in the series.
        unit: of the values.
        kind: `curve` or `heatmap`.
        note: one sentence on what was thinned.
        summary: the figure in words; one line a source (curve) or a row (heat map).
        left_out: summary lines that were left out.
        data: what the page's script draws.
    """

    name: str
    unit: str
    kind: str
    note: str = ""
    summary: list[Summary] = field(default_factory=list)
    left_out: int = 0
    data: dict[str, object] = field(default_factory=dict)


def figures(series: Iterable[Series], detail: float = 1.0) -> list[Figure]:
    """The figures of a report: curves of one name from several processes share one, each heat map has its own.

    Args:
        series: the report's.
        detail: share of the usual numbers of points and cells, to fit a page into its size.
    """
    curves: dict[str, list[Series]] = {}
    maps: list[Series] = []
    for one in series:
        if one.kind == "heatmap":
            maps.append(one)
        else:
            curves.setdefault(one.name, []).append(one)
    return [_curve(group, detail) for group in curves.values()] + [_heatmap(one, detail) for one in maps]


def _curve(group: Sequence[Series], detail: float) -> Figure:
    first = group[0]
    # Many processes share the points of one figure, or a run on 64 ranks would not fit.
    limit = max(int(thin.POINTS * detail / max(1, len(group) / 4)), 50)
    figure = Figure(words.one_line(first.name, 100), words.one_line(first.unit, 40), "curve")
    lines = []
    thinned = 0
    for one in group:
        values = one.values
        steps, kept = thin.points(one.steps, values, limit)  # type: ignore[arg-type]
        thinned = max(thinned, min(len(one.steps), len(values)) - len(kept))
        lines.append({"source": words.one_line(one.source, 60), "steps": steps, "values": kept})
        figure.summary.append(_summary(words.one_line(one.source, 60), one.steps, thin.floats(values)))
    if thinned:
        figure.note = (
            f"Drawn in at most {limit} points a line; the extremes and non-finite points of each stretch are kept."
        )
    figure.data = {"kind": "curve", "name": figure.name, "unit": figure.unit, "lines": lines}
    return figure


def _heatmap(one: Series, detail: float) -> Figure:
    columns, rows = max(int(thin.COLUMNS * detail), 12), max(int(thin.ROWS * detail), 20)
    pooled = thin.pool(one.steps, one.rows, one.values, columns, rows)  # type: ignore[arg-type]
    names = [words.one_line(name, 120) for name in pooled.rows]
    figure = Figure(words.one_line(one.name, 100), words.one_line(one.unit, 40), "heatmap")
    notes = []
    if len(one.steps) > len(pooled.first):
        notes.append(f"{len(one.steps)} steps are drawn in {len(pooled.first)} columns")
    if len(one.rows) > len(names):
        notes.append(f"{len(one.rows)} rows in {len(names)}")
    if notes:
        figure.note = (
            f"{' and '.join(notes)}; each cell shows its largest value, or a non-finite one if there is any. "
            "The table counts cells and names the first step of each."
        )
    figure.note = figure.note[:1].upper() + figure.note[1:]
    for i, name in enumerate(names[:SUMMARY_ROWS]):
        figure.summary.append(_summary(name, pooled.first, pooled.values[i], pooled.empty[i]))
    figure.left_out = max(0, len(names) - SUMMARY_ROWS)
    figure.data = {
        "kind": "heatmap",
        "name": figure.name,
        "unit": figure.unit,
        "source": words.one_line(one.source, 60),
        "rows": names,
        "first": pooled.first,
        "last": pooled.last,
        **thin.pack(pooled),
    }
    return figure


def _summary(name: str, steps: Sequence[int], values: thin.Floats, empty: object = None) -> Summary:
    n = min(len(steps), len(values))
    values = values[:n]
    finite = np.flatnonzero(np.isfinite(values))
    odd = np.flatnonzero(~np.isfinite(values) if empty is None else ~np.isfinite(values) & ~np.asarray(empty)[:n])
    low = high = last = ""
    if len(finite):
        least, most = finite[np.argmin(values[finite])], finite[np.argmax(values[finite])]
        low, high, last = (f"{words.figure(float(values[i]))} at step {steps[i]}" for i in (least, most, finite[-1]))
    text = ""
    if len(odd):
        text = f"{words.figure(float(values[odd[0]]))} from step {steps[odd[0]]}, {len(odd)} in all"
    return Summary(name, low, high, last, text)
