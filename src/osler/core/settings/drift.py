"""Drift of single columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_RULE = ("feature-drift",)


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of single columns."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    ks: float = threshold(
        0.15,
        "Kolmogorov–Smirnov distance from which a move of numbers matters, however sure it is",
        "a judgement: 15 of 100 rows lie elsewhere; it is no test: a significance test goes before it",
        _RULE,
        Bounds(0, 1),
    )
    wasserstein: float = threshold(
        0.08,
        "Wasserstein distance, in spreads of the reference (interquartile range / 1.349), from which a move of numbers "
        "matters, however sure it is",
        "a judgement: a mean that moves by a twelfth of the standard deviation; alone it alarms on about half of "
        "identical normal windows of 200 (`limits alone` in benchmarks/drift_power.py), so a significance test goes before it",
        _RULE,
    )
    js: float = threshold(
        0.1,
        "Jensen–Shannon distance (base 2) from which a move of categories matters, however sure it is",
        "Evidently's default for categorical columns of more than 1,000 rows (docs.evidentlyai.com, data drift)",
        _RULE,
        Bounds(0, 1),
    )
    unseen_share: float = threshold(
        0.01,
        "share of rows in categories that the reference does not hold, from which it matters",
        "a judgement: an encoder fitted on the reference fails on or misreads one row in a hundred",
        _RULE,
        Bounds(0, 1),
    )
    missing_change: float = threshold(
        0.05,
        "change of the share of missing values (nulls and NaN) from which it matters",
        "a judgement: one row in twenty",
        _RULE,
        Bounds(0, 1),
    )
    infinite_change: float = threshold(
        0.01,
        "change of the share of infinite values from which it matters",
        "a judgement: lower than for missing values, because few models take an infinite value at all",
        _RULE,
        Bounds(0, 1),
    )
    level: float = threshold(
        0.05,
        "family-wise false-alarm level: the probability that identical data give any finding, over all columns and tests "
        "together (Holm's correction)",
        "the usual level; kept at windows of 200, 1,000 and 10,000 and for 50 features (benchmarks/drift_power.py)",
        _RULE,
        Bounds(0, 0.5, open_low=True),
    )
    rounding: float = threshold(
        1e-3,
        "how far, in spreads of the reference, values may lie apart and still count as the same: codes that carry float "
        "noise, float32 against float64",
        "a judgement: two orders below `wasserstein`; KS alone would call it a drift when a frequent value moves by one bit",
        _RULE,
        Bounds(0, 1),
    )
    min_values: int = threshold(
        20,
        "values that a column must have on both sides to be judged",
        "a judgement: below it no effect that matters would be significant over a handful of columns",
        _RULE,
        Bounds(1),
    )
    max_categories: int = threshold(
        1000,
        "distinct texts up to which a column is judged as categories; more are taken for text or ids",
        "a judgement: an id has one a row, and beyond a thousand a text rarely is a category that a model knows",
        _RULE,
        Bounds(2),
    )
    unique_share: float = threshold(
        0.5,
        "share of a column's rows that are distinct texts, from which they are taken for ids",
        "a judgement: a category repeats",
        _RULE,
        SHARE,
    )
    max_draws: int = threshold(
        20_000,
        "deals of the Wasserstein permutation test after which it stops, however small the level to be resolved",
        "resolves the level of 0.05 over 400 tests by Holm; more features make moves of the tail alone hard to prove",
        _RULE,
        Bounds(99),
    )
    computing_edges: int = threshold(
        4096,
        "edges per column where reference and current data are both at hand",
        "KS to about 3e-4 (benchmarks/drift.py); the state fits the second-level cache",
        _RULE,
        Bounds(64, 65536),
    )
    window_rows: int = threshold(
        100,
        "values that a window must have to be judged; a left-over part of a window is passed over",
        "a judgement: below it hardly any move is significant",
        _RULE,
        Bounds(1),
    )
    max_windows: int = threshold(
        1000,
        "windows into which current data may be cut",
        "a judgement: the states of all windows are held in memory, about 9 KB a column each",
        _RULE,
        Bounds(1),
    )
    stays_out: int = threshold(
        3,
        "windows in a row, up to the last, that must be out before a drift is said to have begun",
        "a judgement: one window may be a bad day",
        _RULE,
        Bounds(1),
    )
    histograms: int = threshold(
        12,
        "histograms of columns that did not drift, beside those of all that did",
        "a judgement: one screen",
        _RULE,
    )
    bars: int = threshold(
        30,
        "bars of a histogram",
        "a judgement: readable at the width of a report's column",
        _RULE,
        POSITIVE,
    )
