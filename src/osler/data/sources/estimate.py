"""Offset, drift and steps of one clock against another, from pairs of times of the same events."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Times = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

MAD_SD = 1.4826
"""Median absolute deviation → standard deviation of a normal distribution."""
_BLOCKS = 256
_MAX_STEPS = 12


@dataclass(slots=True)
class Step:
    """A jump of the offset: between which times of the left clock (ns), and by how much (ns)."""

    after: int
    before: int
    jump: float


@dataclass(slots=True)
class Clocks:
    """How the right clock runs against the left one. Offsets are right minus left.

    Attributes:
        pairs: pairs of times that it rests on.
        offset: ns at the middle of the pairs' time span; with steps, of the longest stretch between them.
        low, high: interval of the offset, ns.
        drift: dimensionless slope of the offset over the left clock's time (1e-6 is 1 ppm).
        drift_low, drift_high: its interval.
        span: ns from the first pair to the last.
        jitter: robust standard deviation of one pair about the fitted offset, ns.
        steps: jumps of the offset; drift is then not estimated.
        levels: the offset (ns) of each stretch between steps.
        at: [blocks], middle of each block of pairs, ns; `block`: [blocks], median offset there, ns.
    """

    pairs: int
    offset: float
    low: float
    high: float
    drift: float
    drift_low: float
    drift_high: float
    span: float
    jitter: float
    steps: list[Step] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    at: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    block: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def moved(self) -> float:
        """By how much the drift moved the clock over the span, ns."""
        return self.drift * self.span

    @property
    def moved_least(self) -> float:
        """The same at the end of the interval that is nearer to 0; 0 where the interval holds 0."""
        return _nearest_zero(self.drift_low, self.drift_high) * self.span

    @property
    def offset_least(self) -> float:
        """The end of the offset's interval that is nearer to 0; 0 where the interval holds 0."""
        return _nearest_zero(self.low, self.high)


def _nearest_zero(low: float, high: float) -> float:
    return max(low, 0.0) + min(high, 0.0)


def compare_clocks(left: Times, right: Times, z: float, step_floor: float) -> Clocks:
    """Estimate offset, drift and steps from matched times.

    The pairs are cut into up to 256 blocks of equal count along the left clock and each block gives its median, which a
    wrong match or a late arrival does not move. Over the blocks: the Theil–Sen slope with Sen's interval (Sen 1968,
    JASA 63: 1379), its variance raised for autocorrelated residuals by (1 + r) / (1 - r). Jumps are accepted where they
    exceed `step_floor` and six times the blocks' noise, a piecewise constant offset fits at most half as badly (sum of
    absolute residuals) as the line, and the offset is flat between them.

    Args:
        left, right: int64 [pairs], ns. At least one pair.
        z: half-width of the intervals in standard errors.
        step_floor: ns; smaller jumps are not looked for.
    """
    if len(left) > 1 and np.any(left[1:] < left[:-1]):
        order = np.argsort(left, kind="stable")
        left, right = left[order], right[order]
    base = int(left[0])
    shift = float(np.median((right - left)[:: max(1, len(left) // 100_000)]))
    # small numbers from here on: float64 holds no nanoseconds since 1970
    difference = (right - left - np.int64(shift)).astype(np.float64)
    at, block = _block_medians(left, difference)
    span = float(left[-1] - left[0])
    x = (at - base).astype(np.float64)
    slope, low, high, level, se = theil_sen(x, block, z)
    middle = level + slope * span / 2
    edges = _segments(block, slope * x + level, step_floor)
    if edges:
        bounds = [0, *edges, len(block)]
        levels = [float(np.median(block[a:b])) for a, b in itertools.pairwise(bounds)]
        steps = [_locate(left, difference, at, e, levels[i], levels[i + 1]) for i, e in enumerate(edges)]
        cuts = np.searchsorted(left, [s.before for s in steps])
        fitted = np.concatenate([np.full(n, v) for n, v in zip(np.diff([0, *cuts, len(left)]), levels)])
        longest = int(np.argmax(np.diff(bounds)))
        middle, slope, low, high = levels[longest], 0.0, -math.inf, math.inf
        inside = block[bounds[longest] : bounds[longest + 1]]
        se = MAD_SD * float(np.median(np.abs(inside - middle))) * 1.2533 / math.sqrt(len(inside))
    else:
        steps, levels = [], [middle + shift]
        fitted = level + slope * (left - base).astype(np.float64)
    residual = np.abs(difference - fitted)
    jitter = MAD_SD * float(np.median(residual[:: max(1, len(residual) // 200_000)]))
    # the standard error of a median is 1.2533 sd / sqrt(n) for normal noise
    se = max(se, 1.2533 * jitter / math.sqrt(len(left)))
    return Clocks(
        len(left), middle + shift, middle + shift - z * se, middle + shift + z * se, slope, low, high, span, jitter,
        steps, [v + shift for v in levels] if edges else levels, at, block + shift,
    )  # fmt: skip


def _block_medians(left: Times, difference: Floats) -> tuple[Times, Floats]:
    blocks = min(_BLOCKS, len(left))
    size = len(left) // blocks
    body = size * blocks
    at = left[:body:size] + (left[size - 1 : body : size] - left[:body:size]) // 2
    return at, np.median(difference[:body].reshape(blocks, size), axis=1)


def theil_sen(x: Floats, y: Floats, z: float) -> tuple[float, float, float, float, float]:
    """Theil–Sen: slope, its interval, the level at x = 0, and the standard error of the level in the middle."""
    n = len(x)
    if n < 4 or x[-1] <= x[0]:
        return 0.0, -math.inf, math.inf, float(np.median(y)), MAD_SD * float(np.median(np.abs(y - np.median(y))))
    i, j = np.triu_indices(n, 1)
    run = x[j] - x[i]
    apart = run > 0
    slopes = np.sort((y[j] - y[i])[apart] / run[apart])
    slope = float(np.median(slopes))
    level = float(np.median(y - slope * x))
    residual = y - slope * x - level
    spread = float(np.sum(residual**2))
    r = float(np.sum(residual[1:] * residual[:-1]) / spread) if spread else 0.0
    r = min(max(r, 0.0), 0.98)
    inflate = math.sqrt((1 + r) / (1 - r))
    kendall = math.sqrt(n * (n - 1) * (2 * n + 5) / 18) * inflate
    half = z * kendall / 2
    low = slopes[max(0, math.floor(len(slopes) / 2 - half))] if half < len(slopes) / 2 else -math.inf
    high = slopes[min(len(slopes) - 1, math.ceil(len(slopes) / 2 + half))] if half < len(slopes) / 2 else math.inf
    sd = MAD_SD * float(np.median(np.abs(residual)))
    return slope, float(low), float(high), level, 1.2533 * sd * inflate / math.sqrt(n)


def _segments(y: Floats, line: Floats, floor: float) -> list[int]:
    """Block numbers at which a new level begins: jumps between the medians of the four blocks on either side."""
    if len(y) < 4:
        return []
    noise = MAD_SD * float(np.median(np.abs(np.diff(y)))) / math.sqrt(2)
    width = min(4, len(y) // 2)
    jumps = np.zeros(len(y))
    for edge in range(2, len(y) - 1):
        before, after = y[max(0, edge - width) : edge], y[edge : edge + width]
        jumps[edge] = np.median(after) - np.median(before)
    size = np.abs(jumps)
    size[size <= max(floor, 6 * noise)] = 0.0
    inner: list[int] = []
    while len(inner) < _MAX_STEPS and size.any():
        # the middle of the blocks at which the medians see the jump whole
        top = np.flatnonzero(size >= 0.999 * size.max())
        run = top[: int(np.argmax(np.diff(top, append=top[-1] + 2) > 1)) + 1]
        edge = max(run, key=lambda e: abs(float(y[e] - y[e - 1])))
        inner.append(int(edge))
        size[max(0, edge - width) : edge + width] = 0.0
    inner.sort()
    edges = [0, *inner, len(y)]
    stretches = [y[a:b] for a, b in itertools.pairwise(edges)]
    levels = [float(np.median(s)) for s in stretches]
    # a line cut into many pieces fits too: the pieces must fit better than it, and each be flat against the jumps
    stepped = sum(float(np.sum(np.abs(s - v))) for s, v in zip(stretches, levels))
    if not inner or stepped > 0.5 * float(np.sum(np.abs(y - line))):
        return []
    ramps = [abs(float(np.median(s[len(s) // 2 :]) - np.median(s[: len(s) // 2]))) for s in stretches if len(s) >= 4]
    least = float(np.min(np.abs(np.diff(levels))))
    return inner if least > floor and max(ramps, default=0.0) < 0.25 * least else []


def _locate(left: Times, difference: Floats, at: Times, edge: int, before: float, after: float) -> Step:
    """The jump's place among the pairs of the two blocks around it: the cut that misplaces fewest of them."""
    size = len(left) // len(at)
    start, stop = max(0, (edge - 1) * size), min(len(left), (edge + 1) * size)
    high = difference[start:stop] > (before + after) / 2
    wrong = high if after > before else ~high
    misplaced = np.concatenate([[0], np.cumsum(wrong)]) + np.concatenate([np.cumsum(~wrong[::-1])[::-1], [0]])
    cut = start + min(max(int(np.argmin(misplaced)), 1), stop - start - 1)
    return Step(int(left[cut - 1]), int(left[cut]), after - before)
