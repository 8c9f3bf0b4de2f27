"""How a source is sampled: its interval, jitter and gaps, and whether its rows arrive in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.data.sources.estimate import MAD_SD, Times

_SAMPLE = 2_000_000


@dataclass(slots=True)
class Rate:
    """The intervals between successive rows.

    Attributes:
        interval: median, ns; 0 where no two rows differ in time.
        spread: robust standard deviation of the intervals over their median; an exponential distribution has 1.03.
        gaps: intervals longer than the given number of medians. longest: ns. lost: share of the span within gaps.
        count: intervals that it rests on.
    """

    interval: float
    spread: float
    gaps: int
    longest: float
    lost: float
    count: int

    @property
    def hertz(self) -> float:
        """Rows a second."""
        return 1e9 / self.interval if self.interval else 0.0

    def regular(self, spread: float) -> bool:
        """Whether the source is sampled at a rate: enough intervals, and about equal ones."""
        return self.count >= 20 and self.interval > 0 and self.spread <= spread


def rate_of(times: Times, fresh: np.ndarray[Any, np.dtype[np.bool_]] | None, gap: float) -> Rate:
    """The rate of times that ascend within each series.

    Args:
        times: int64 ns. fresh: bool [rows], where a new series begins; None for one series.
        gap: intervals, in medians, from which it is a gap.
    """
    steps = np.diff(times)
    if fresh is not None:
        steps = steps[~fresh[1:]]
    steps = steps[steps > 0]
    if not len(steps):
        return Rate(0.0, 0.0, 0, 0.0, 0.0, 0)
    some = steps[:: max(1, len(steps) // _SAMPLE)]
    middle = float(np.median(some))
    spread = MAD_SD * float(np.median(np.abs(some - middle))) / middle
    wide = steps[steps > gap * middle]
    lost = float(np.sum(wide, dtype=np.float64) / np.sum(steps, dtype=np.float64))
    return Rate(middle, spread, len(wide), float(steps.max()), lost, len(steps))


@dataclass(slots=True)
class Arrival:
    """Rows that come after newer ones.

    Attributes:
        late: rows older than the newest before them. beyond: those older by more than the tolerance.
        longest: the greatest lateness, ns. first: the first such row, -1 where there is none.
        rows: rows looked at. sorted_down: whether the rows stand newest first.
    """

    late: int
    beyond: int
    longest: float
    first: int
    rows: int
    sorted_down: bool = False

    @property
    def in_order(self) -> bool:
        """Whether the rows are meant to stand in time: fewer than one in five is late."""
        return self.late <= 0.2 * self.rows


def arrival_of(times: Times, rows: np.ndarray[Any, Any], tolerance: float) -> Arrival:
    """How late rows arrive.

    Args:
        times: int64 ns in the order of the file. rows: their positions in it.
        tolerance: ns.
    """
    if len(times) < 2:
        return Arrival(0, 0, 0.0, -1, len(times))
    back = times[1:] < times[:-1]
    if not back.any():
        return Arrival(0, 0, 0.0, -1, len(times))
    down = not np.any(times[1:] > times[:-1])
    lateness = np.maximum.accumulate(times) - times
    late = lateness > 0
    first = int(rows[int(np.argmax(late))])
    return Arrival(
        int(np.count_nonzero(late)), int(np.count_nonzero(lateness > tolerance)), float(lateness.max()), first,
        len(times), down,
    )  # fmt: skip
