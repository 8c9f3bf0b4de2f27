"""Histograms of what is compared, as bars of a page and as marks on a terminal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from osler.core.report import Series
from osler.render import words

WIDTH, HEIGHT = 560, 180  # of the drawing, in its own units
_MARKS = " ▁▂▃▄▅▆▇█"
_STRETCH = 20.0  # bins whose widths differ by more than this are drawn equally wide, or one tail would be all there is


@dataclass(frozen=True, slots=True)
class Drawing:
    """A histogram on the page: its name, the drawing, what the bars stand for, the range, and a sentence in words."""

    name: str
    svg: Markup
    rows: list[str]
    low: str
    high: str
    labels: list[str]
    caption: str


def drawing(series: Series) -> Drawing | None:
    """A `histogram` series as a drawing; None where there is nothing to draw."""
    shares = [[_number(v) for v in row] for row in series.values if isinstance(row, list)]
    bins = len(shares[0]) if shares else 0
    if not bins or any(len(row) != bins for row in shares):
        return None
    lefts, widths, heights, even = _shapes(series, shares, bins)
    top = max((h for row in heights for h in row), default=0.0)
    if top <= 0:
        return None
    parts = []
    for i, row in enumerate(heights):
        for left, width, height in zip(lefts, widths, row):
            tall = HEIGHT * height / top
            if tall > 0:
                parts.append(
                    f'<rect class="bar-{min(i, 1)}" x="{left:.2f}" y="{HEIGHT - tall:.2f}" width="{width:.2f}" height="{tall:.2f}"/>'
                )
    name = words.one_line(series.name, 100)
    svg = Markup(
        f'<svg class="histogram" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )
    low, high = (series.edges[0], series.edges[-1]) if series.edges else (None, None)
    caption = f"{bins} bins" + (", drawn equally wide" if even and series.edges else "")
    return Drawing(
        name,
        svg,
        [words.one_line(row, 60) for row in series.rows],
        "" if low is None else words.figure(low),
        "" if high is None else words.figure(high),
        [words.one_line(label, 60) for label in series.labels],
        caption,
    )


def spark(shares: Sequence[object], top: float, limit: int = 40) -> str:
    """Shares as a line of block characters; neighbouring bins are added up where there are more than `limit`."""
    values = pooled([_number(v) for v in shares], limit)
    if top <= 0:
        return ""
    return "".join(_MARKS[0 if v <= 0 else max(1, min(8, round(8 * v / top)))] for v in values)


def pooled(values: Sequence[float], limit: int) -> list[float]:
    """At most `limit` sums of neighbouring values."""
    if len(values) <= limit:
        return list(values)
    cuts = [round(i * len(values) / limit) for i in range(limit + 1)]
    return [math.fsum(values[a:b]) for a, b in itertools.pairwise(cuts)]


def _shapes(
    series: Series, shares: list[list[float]], bins: int
) -> tuple[list[float], list[float], list[list[float]], bool]:
    """Left edges, widths and heights of the bars, and whether they are drawn equally wide."""
    edges = series.edges
    sizes = [b - a for a, b in itertools.pairwise(edges)] if len(edges) == bins + 1 else []
    usable = bool(sizes) and all(math.isfinite(s) and s > 0 for s in sizes) and max(sizes) <= _STRETCH * min(sizes)
    if not usable:
        step = WIDTH / bins
        return [i * step for i in range(bins)], [step] * bins, shares, True
    span = edges[-1] - edges[0]
    lefts = [WIDTH * (e - edges[0]) / span for e in edges[:-1]]
    widths = [WIDTH * s / span for s in sizes]
    # The area of a bar is its share, as in every histogram whose bins differ in width.
    heights = [[v * span / (bins * s) for v, s in zip(row, sizes)] for row in shares]
    return lefts, widths, heights, False


def _number(value: object) -> float:
    number = float(value) if isinstance(value, (int, float)) else 0.0
    return number if math.isfinite(number) and number > 0 else 0.0
