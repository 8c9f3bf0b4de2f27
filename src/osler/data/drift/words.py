"""What moved, in words, and what to do about it. No value of the data is named, only shares, spreads and ranks."""

from __future__ import annotations

import math

import numpy as np

from osler.core.settings.drift import Drift
from osler.data.drift import summary
from osler.data.drift.categorical import Categories, aligned, ranked
from osler.data.drift.grid import Grid
from osler.data.drift.judge import ColumnVerdict, in_spreads
from osler.data.drift.profile import ColumnState

_GRID = np.linspace(0.05, 0.95, 91)
_MIDDLE = (_GRID > 0.245) & (_GRID < 0.755)
_TAIL = 0.01  # the reference's own share beyond each end of the range that is spoken of


def message(verdict: ColumnVerdict, before: ColumnState, now: ColumnState, drift: Drift) -> str:
    """One sentence on a column that drifted, with the numbers."""
    parts = []
    for reason in verdict.reasons:
        if reason == "distribution":
            parts.append(_distribution(verdict, before, now, drift))
        elif reason == "categories":
            parts.append(
                f"its categories moved by a Jensen–Shannon distance of {verdict.js:.3f} (limit {drift.js:g}): "
                f"{categories(before, now)}"
            )
        elif reason == "unseen":
            parts.append(f"{percent(verdict.unseen or 0.0)} of its rows are in categories that the reference never had")
        elif reason == "missing":
            parts.append(f"its missing share went from {percent(verdict.missing[0])} to {percent(verdict.missing[1])}")
        else:
            parts.append(
                f"its share of infinite values went from {percent(verdict.infinite[0])} to {percent(verdict.infinite[1])}"
            )
    return f"{verdict.name!r} drifted: {'; '.join(parts)} (p {probability(verdict.p)} after correction)"


def _distribution(verdict: ColumnVerdict, before: ColumnState, now: ColumnState, drift: Drift) -> str:
    assert verdict.ks is not None and before.grid is not None and now.grid is not None
    numbers = f"KS {verdict.ks.low:.3f} (limit {drift.ks:g})"
    if verdict.moved is not None and math.isfinite(verdict.moved):
        numbers += f", Wasserstein {verdict.moved:.3g} reference spreads (limit {drift.wasserstein:g})"
    return f"{numbers}: {numbers_moved(before.grid, now.grid)}"


def moves(before: Grid, now: Grid) -> dict[str, float]:
    """How a column of numbers moved, in numbers.

    Returns:
        `shift`: mean move of the quantiles from 25 % to 75 %, in reference spreads; `mean_shift` likewise; `spread_ratio`:
        of the mean distances of the quantiles from 5 % to 95 % from the median; `beyond_low`, `beyond_high`: shares of
        the current rows below and above the central 98 % of the reference; `outside`: share beyond its extremes.
    """
    if before.n == 0 or now.n == 0:
        return {}
    unit = summary.spread(before)
    old, new = summary.quantiles(before, _GRID), summary.quantiles(now, _GRID)
    with np.errstate(over="ignore", invalid="ignore"):
        shift = float((new - old)[_MIDDLE].mean())
        ratio = in_spreads(*(float(np.abs(q - np.median(q)).mean()) for q in (new, old)))
    low, high = summary.quantiles(before, np.array([_TAIL, 1 - _TAIL]))
    below, above = summary.share_outside(now, float(low), float(high))
    out_low = summary.below(now, math.nextafter(before.low, -math.inf))
    mean_shift = summary.mean(now) - summary.mean(before)
    return {
        "shift": math.copysign(in_spreads(abs(shift), unit), shift),
        "mean_shift": math.copysign(in_spreads(abs(mean_shift), unit), mean_shift),
        "spread_ratio": ratio,
        "beyond_low": below,
        "beyond_high": above,
        "outside": out_low + 1 - summary.below(now, before.high),
    }


def numbers_moved(before: Grid, now: Grid) -> str:
    """In words: the largest of location, scale and tail first, with its number."""
    found = moves(before, now)
    if not found:
        return "one side has no finite value"
    shift, ratio = found["shift"], found["spread_ratio"]
    if summary.spread(before) == 0:
        return "the reference is constant and the current data are not the same constant"
    tails = max(found["beyond_low"], found["beyond_high"])
    said = [
        (
            abs(shift),
            f"the middle half of its values moved {'up' if shift > 0 else 'down'} by {abs(shift):.2g} spreads",
        ),
        (abs(math.log(ratio)) if ratio > 0 else math.inf, _scale(ratio)),
        (
            10 * max(0.0, tails - _TAIL),
            f"{percent(tails)} of its values lie {'below' if tails == found['beyond_low'] else 'above'} the central "
            f"98 % of the reference (1 % did)",
        ),
    ]
    said.sort(key=lambda pair: -pair[0])
    text = said[0][1]
    if said[1][0] > 0.5 * said[0][0]:
        text += f", and {said[1][1]}"
    if found["outside"] >= 0.001:
        text += f"; {percent(found['outside'])} are beyond anything in the reference"
    return text


def _scale(ratio: float) -> str:
    if ratio == 0:
        return "most of its values are now one and the same"
    return f"its spread {'grew' if ratio > 1 else 'shrank'} to {ratio:.2g} times the reference's"


def categories(before: ColumnState, now: ColumnState, most: int = 3) -> str:
    """The categories whose shares moved most, by rank in the reference or by name where names are kept."""
    old, new = before.categories, now.categories
    assert old is not None and new is not None
    keys, (one, two) = aligned((old, new))
    p, q = one / old.n, two / new.n
    order = sorted(range(len(keys)), key=lambda i: -abs(q[i] - p[i]))[:most]
    named = labels(old, new)
    return ", ".join(f"{named[keys[i]]} {percent(p[i])} → {percent(q[i])}" for i in order)


def labels(old: Categories, new: Categories) -> dict[int, str]:
    """Category → what it is called in a report: `#1` is the most frequent of the reference, `new #1` was not there."""
    out = {key: f"#{i + 1}" for i, key in enumerate(ranked(old.counts))}
    fresh = [key for key in ranked(new.counts) if key not in out]
    out |= {key: f"new #{i + 1}" for i, key in enumerate(fresh)}
    return {key: old.names.get(key) or new.names.get(key) or word for key, word in out.items()}


def fix(verdict: ColumnVerdict) -> str:
    """What to do about this column."""
    first = verdict.reasons[0]
    if first == "missing":
        return (
            f"Find the step that stopped (or started) filling {verdict.name!r}: a renamed source field or a failed join "
            "shows as missing values. Until it is mended, keep rows without it away from the model."
        )
    if first == "infinite":
        return (
            f"Find the division or logarithm that makes infinite values in {verdict.name!r} and guard it at its source."
        )
    if first == "unseen":
        return (
            f"Compare the category lists of {verdict.name!r} on both sides: a changed spelling or code is mended where it "
            "arises; truly new categories need an encoder fitted again, and a model trained on rows that have them."
        )
    return (
        f"Look first whether {verdict.name!r} is still made the same way (unit, scaling, default values, source, filter). "
        "If it is, the population has moved: score the model on recent labelled rows, and retrain on data that include them "
        "where the score has fallen."
    )


def percent(share: float) -> str:
    """A share as text, with the digits that matter."""
    if share == 0 or share == 1:
        return f"{share:.0%}"
    digits = 1 if 0.01 <= share <= 0.99 else 2
    return f"{100 * share:.{digits}f} %" if share >= 5e-5 else "< 0.01 %"


def probability(p: float | None) -> str:
    """A p-value as text."""
    if p is None:
        return "unknown"
    return f"{p:.2g}" if p >= 1e-6 else "< 1e-6"
