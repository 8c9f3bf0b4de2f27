"""Drift watched window by window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, Bounds, threshold

_RULE = ("feature-drift",)


@dataclass(frozen=True, slots=True)
class Monitor:
    """Drift watched window by window."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    runs: int = threshold(
        3,
        "windows in a row in which a column must drift before fresh samples are asked for",
        "a judgement: one window may be a bad day; `runs` in benchmarks/shift.py measures what it buys",
        _RULE,
        Bounds(1, 1000),
    )
    disjoint: bool = threshold(
        False,
        "let overlapping windows count as a run only when the run holds `runs` windows that share no row",
        "windows that share nine tenths of their rows are nearly one window: `runs` in benchmarks/shift.py",
        _RULE,
    )
    lateness: float = threshold(
        0.1,
        "how long a pane of event time stays open for late rows, as a share of the pane",
        "a judgement: six minutes of an hour",
        _RULE,
    )
    ahead: float = threshold(
        10.0,
        "windows by which a row's time may lie ahead of the median of its batch; rows further ahead are left out",
        "a judgement: one wrong clock must not close every window that is still being filled",
        _RULE,
        POSITIVE,
    )
    history: int = threshold(
        1000,
        "judged windows that a report shows",
        "a judgement: six weeks of hours",
        bounds=Bounds(1, 1e6),
    )
    max_panes: int = threshold(
        10_000,
        "panes that are held at most; the oldest go first",
        "a judgement: a pane takes about 8 KB a column, so 1.6 GB at 20 columns",
        bounds=Bounds(2, 1e7),
    )
    sequential: bool = threshold(
        False,
        "test every column sequentially too, with a false-alarm bound for the whole life of the stream",
        "off: it assumes exchangeable rows, which daily cycles are not",
        _RULE,
    )
    alpha: float = threshold(
        0.01,
        "probability that the sequential test ever raises a false alarm, over all columns",
        "a judgement",
        _RULE,
        Bounds(1e-9, 0.5),
    )
    restart: int = threshold(
        500,
        "rows after which the sequential test starts a fresh bettor",
        "a judgement: half a window of 1,000, so a change is met within that",
        _RULE,
        Bounds(10, 1e6),
    )
    bins: int = threshold(
        32,
        "bins into which the sequential test sorts a column's values",
        "a judgement: three times the cells of the bettors' histograms",
        _RULE,
        Bounds(4, 1000),
    )
    reference_rows: int = threshold(
        20_000,
        "rows of the reference that the sequential test draws",
        "a judgement: its noise is then far below that of the rows in which a shift must be seen",
        _RULE,
        Bounds(200, 1e7),
    )
    webhook_timeout: float = threshold(
        2.0, "seconds that one attempt to reach a webhook may take", "a judgement", bounds=POSITIVE
    )
    webhook_retries: int = threshold(
        3,
        "further attempts after the first, each after twice the pause of the one before",
        "a judgement",
        bounds=Bounds(0, 20),
    )
    webhook_pause: float = threshold(
        0.5, "seconds before the first further attempt", "a judgement", bounds=Bounds(0, 60)
    )
    webhook_queue: int = threshold(
        100,
        "messages that wait for a webhook at most; further ones are dropped and counted",
        "a judgement",
        bounds=Bounds(1, 1e5),
    )
