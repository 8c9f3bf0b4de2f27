"""Values that stand for missing: -999 among ages, "?" among numbers. They are named, never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Bools, Floats, Raw

# Numbers that are written for "no value" in survey files, sensors and exports.
_NUMBERS = (
    *(-float("9" * n) for n in range(1, 8)),
    *(float("9" * n) for n in range(3, 8)),
    -1.0,
    -888.0,
    -8888.0,
)
# Text that hardly means anything else, and text that may be a category of its own.
_CERTAIN = frozenset({"", "?", "na", "n/a", "n.a.", "nan", "null", "#n/a", "#null!", "<na>", "(null)", "\\n"})
_DOUBTFUL = frozenset({"none", "unknown", "missing", "undefined", "not available", "-", "--", ".", "nil"})
# Share of the other cells that must read as numbers for a text column to be numbers with codes among them.
_READS = 0.9


@dataclass(frozen=True, slots=True)
class Coded:
    """A value that probably stands for missing.

    Attributes:
        column: where.
        code: the value as osler's own list writes it.
        share: of the sampled rows.
        certain: False where the value may be meant.
        text_for_numbers: the column is text only because of such values.
    """

    column: str
    code: str
    share: float
    certain: bool
    text_for_numbers: bool = False


def coded(columns: Sequence[Raw], settings: Missing) -> list[Coded]:
    """The suspects among sampled columns, at most one per column and value."""
    out: list[Coded] = []
    for column in columns:
        out.extend(_text(column, settings) if column.is_category else _number(column, settings))
    return out


def _number(column: Raw, settings: Missing) -> list[Coded]:
    values = column.values.astype(np.float64, copy=False)
    seen = values[np.isfinite(values)]
    if len(seen) < settings.min_rows:
        return []
    rest = seen[~np.isin(seen, _NUMBERS)]
    # a column of few values (flags, ratings) has no distance to measure
    if len(np.unique(rest)) < settings.coded_values:
        return []
    low, high = float(rest.min()), float(rest.max())
    quarter, three = np.percentile(rest, [25, 75])
    spread = float(three - quarter) or float(high - low) / 4
    out = []
    for code in _NUMBERS:
        count = int((seen == code).sum())
        if count < max(3, settings.coded_share * len(values)):
            continue
        gap = low - code if code < low else code - high if code > high else 0.0
        far = gap >= settings.coded_gap * spread and gap >= 0.25 * (high - low)
        # the only negative value of a column is no measurement, unless it is -1: that is also a legal answer
        alone = code < 0 <= low
        if far or alone:
            certain = far or code <= -99
            out.append(Coded(column.name, f"{code:g}", count / len(values), certain))
    return out


def _text(column: Raw, settings: Missing) -> list[Coded]:
    counts = Counter(v.strip().lower() for v in column.values.tolist() if isinstance(v, str))
    total = len(column.values)
    suspects = {v: n for v, n in counts.items() if v in _CERTAIN or v in _DOUBTFUL}
    others = {v: n for v, n in counts.items() if v not in suspects}
    if not suspects or not others:
        return []
    # "NA" among two-letter codes may be Namibia
    lengths = {len(v) for v in others}
    codes = lengths == {2}
    reads = sum(n for v, n in others.items() if _is_number(v)) / sum(others.values())
    out = []
    for value, count in sorted(suspects.items(), key=lambda item: (-item[1], item[0])):
        numbers = reads >= _READS
        if count < max(3, settings.coded_share * total) and not numbers:
            continue
        certain = numbers or (value in _CERTAIN and not (codes and len(value) == 2))
        out.append(Coded(column.name, value or "an empty text", count / total, certain, numbers))
    return out


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def as_missing(column: Raw, found: Sequence[Coded]) -> Raw:
    """The column with its certain codes taken as missing, for judging only. Text that stands for numbers stays text."""
    codes = [c for c in found if c.column == column.name and c.certain]
    if not codes:
        return column
    if not column.is_category:
        values: Floats = column.values.astype(np.float64)
        values[np.isin(values, [float(c.code) for c in codes])] = np.nan
        return Raw(column.name, values, column.integer)
    written = {"" if c.code == "an empty text" else c.code for c in codes}
    gone: Bools = np.array([isinstance(v, str) and v.strip().lower() in written for v in column.values.tolist()])
    kept = column.values.copy()
    kept[gone] = None
    return Raw(column.name, kept)
