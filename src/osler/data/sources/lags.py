"""The lag between two streams that share no ids: from the pattern of their events, or from a quantity that both measure."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.data.sources.estimate import MAD_SD, Clocks, Floats, Times, compare_clocks, theil_sen

MAX_LAG = 15 * 3_600_000_000_000
"""The longest lag that is looked for: zones lie at most 26 h apart, and nearly all pairs in use at most 15 h."""
_BINS = (1 << 20) - 16
"""With the reach, so that the transforms are of 2^20."""
_COARSER = (1, 8, 64)
_RIVAL = 0.7
_NS_FLOOR = 1_000_000
_ROWS = 2_000_000
_STRETCHES = 24
_PART_HEIGHT = 6.0


@dataclass(slots=True)
class Lag:
    """The best lag of a cross-correlation.

    Attributes:
        lag: ns, right minus left. width: ns, the bin; the lag is known to about that.
        height: of the peak over the other lags, in standard deviations (the robust one where it is larger).
        rival: height of the next peak elsewhere, relative to the first.
    """

    lag: float
    width: float
    height: float
    rival: float

    def sure(self, height: float) -> bool:
        """Whether it stands out, and alone: regular and periodic streams have many peaks."""
        return self.height >= height and self.rival < _RIVAL


NO_LAG = Lag(0.0, 0.0, 0.0, 1.0)


def event_lag(
    left: Times,
    right: Times,
    left_ids: Times | None = None,
    right_ids: Times | None = None,
    longest: int = MAX_LAG,
) -> Lag:
    """The lag at which the events of two streams fall together.

    Events are counted in bins, freed of slow changes (day and night) and cross-correlated by FFT, at three widths so
    that a drifting clock does not smear the peak away. With ids, each id's events count +1 or -1 by a hash of the id:
    events of different ids then cancel on average, and one transform does for all of them.

    Args:
        left, right: int64 ns, any order.
        left_ids, right_ids: codes of the ids, the same code for the same id; None where there are none.
        longest: ns, the longest lag that is looked for.
    """
    if min(len(left), len(right)) < 8:
        return NO_LAG
    start, stop = min(left.min(), right.min()), max(left.max(), right.max())
    reach = min(longest, int(stop - start))
    # one bin in 32 filled is sparse enough to tell lags apart
    most = min(_BINS, max(1 << 14, 32 * min(len(left), len(right))) - 16)
    width = max(_NS_FLOOR, -(-int(stop - start + reach) // most))
    bins = int(stop - start) // width + 1
    best = NO_LAG
    for salt in range(1 if left_ids is None else 3):
        ours = _counts(left, left_ids, start, width, bins, salt)
        theirs = _counts(right, right_ids, start, width, bins, salt)
        for factor in _COARSER:
            x, y = _high_pass(_coarsen(ours, factor)), _high_pass(_coarsen(theirs, factor))
            found = _peak(x, y, float(width * factor), reach)
            if found.height > 1.2 * best.height:
                best = found
    return best


def signal_lag(left: Times, left_values: Floats, right: Times, right_values: Floats, step: int) -> Lag:
    """The lag at which two recordings of one quantity agree best, on a grid of `step` ns.

    Both are averaged on the grid, gaps are filled by straight lines, and the first differences are cross-correlated.
    """
    if min(len(left), len(right)) < 16:
        return NO_LAG
    start, stop = min(left.min(), right.min()), max(left.max(), right.max())
    step = max(step, -(-int(stop - start) // _BINS))
    bins = int(stop - start) // step + 1
    x = np.diff(_grid(left, left_values, start, step, bins))
    y = np.diff(_grid(right, right_values, start, step, bins))
    return _peak(_clipped(x), _clipped(y), float(step), min(MAX_LAG, int(stop - start) * 9 // 10))


def follow(left: Times, right: Times, lag: Lag, z: float, step_floor: float) -> tuple[Clocks, float] | None:
    """Pair events near the lag, nearest first, and compare the clocks on the pairs.

    The window around the fitted offset shrinks to five times the jitter in four rounds.

    Args:
        left, right: int64 ns, ascending.
        lag: what `event_lag` found.
        z, step_floor: as for `compare_clocks`.

    Returns:
        the clocks and the share of the shorter stream that found a partner; None where fewer than eight events pair, or
        where events follow one another too closely to be told apart at this jitter.
    """
    every = max(1, len(left) // _ROWS)
    ours = left[::every]
    window, offset = _first_guess(left, right, ours, lag, z)
    clocks = None
    for _ in range(4):
        at, difference = _nearest(ours, right, offset)
        near = np.abs(difference - offset) <= window
        if np.count_nonzero(near) < 8:
            return None
        a = ours[near]
        clocks = compare_clocks(a, right[at[near]], z, step_floor)
        if clocks.steps:
            break
        offset = clocks.offset + clocks.drift * (ours - (a[0] + a[-1]) / 2).astype(np.float64)
        window = min(window, max(5 * clocks.jitter, 2e3))
    assert clocks is not None
    apart = float(np.median(np.diff(right))) if len(right) > 1 else 0.0
    if apart < 4 * clocks.jitter:
        return None
    share = np.count_nonzero(near) / max(1, min(len(ours), len(right) // every))
    return clocks, float(min(share, 1.0))


def _first_guess(left: Times, right: Times, ours: Times, lag: Lag, z: float) -> tuple[float, Floats]:
    """How far from what offset to look for partners: where events follow one another closely, a drift smears the peak over
    many of them, and shorter stretches of time, each with its own lag, give the line to start from."""
    apart = float(np.median(np.diff(right))) if len(right) > 1 else 0.0
    constant = 4.0 * lag.width, np.full(len(ours), lag.lag)
    if lag.width < 2 * apart or len(left) < 50 * _STRETCHES:
        return constant
    edges = np.linspace(int(left[0]), int(left[-1]) + 1, _STRETCHES + 1).astype(np.int64)
    middles, found, widths = [], [], []
    reach = int(2 * lag.width)
    moved = right - np.int64(round(lag.lag))
    for low, high in itertools.pairwise(edges):
        mine = left[np.searchsorted(left, low) : np.searchsorted(left, high)]
        theirs = moved[np.searchsorted(moved, low - reach) : np.searchsorted(moved, high + reach)]
        part = event_lag(mine, theirs, longest=reach)
        if part.height > _PART_HEIGHT and part.rival < _RIVAL:
            middles.append(float(low + (high - low) // 2 - edges[0]))
            found.append(part.lag)
            widths.append(part.width)
    if len(found) < _STRETCHES // 2:
        return constant
    slope, _, _, level, _ = theil_sen(np.asarray(middles), np.asarray(found), z)
    line = lag.lag + level + slope * (ours - edges[0]).astype(np.float64)
    return 2.0 * float(np.median(widths)), line


def _counts(times: Times, ids: Times | None, start: int, width: int, bins: int, salt: int) -> Floats:
    at = (times - start) // width
    if ids is None:
        return np.bincount(at, minlength=bins).astype(np.float64)
    mixed = (ids.view(np.uint64) ^ np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)) * np.uint64(0xFF51AFD7ED558CCD)
    sign = np.where(mixed >> np.uint64(63), 1.0, -1.0)
    return np.bincount(at, weights=sign, minlength=bins).astype(np.float64)


def _coarsen(x: Floats, factor: int) -> Floats:
    return np.add.reduceat(x, np.arange(0, len(x), factor)) if factor > 1 else x


def _high_pass(x: Floats) -> Floats:
    """Without what changes over more than 64 bins, and with bursts capped so that one does not decide."""
    size = min(64, max(2, len(x) // 4))
    total = np.concatenate([[0.0], np.cumsum(x)])
    low = np.maximum(np.arange(len(x)) - size // 2, 0)
    high = np.minimum(low + size, len(x))
    return _clipped(x - (total[high] - total[low]) / (high - low))


def _clipped(x: Floats) -> Floats:
    limit = 8 * float(np.std(x)) if len(x) else 0.0
    return np.clip(x, -limit, limit)


def _peak(x: Floats, y: Floats, width: float, reach: int) -> Lag:
    from numpy.fft import irfft, rfft

    span = int(min(reach / width, len(x) - 1))
    if span < 8:
        return NO_LAG
    size = 1 << int(len(x) + span + 1).bit_length()
    cross = irfft(np.conj(rfft(x, size)) * rfft(y, size), size)
    cross = np.concatenate([cross[size - span :], cross[: span + 1]])
    # lags with little overlap are noisier: compare each with the share of the overlap that it rests on
    cross = cross / np.sqrt(np.maximum(1 - np.abs(np.arange(-span, span + 1)) / len(x), 0.05))
    middle = float(np.median(cross))
    top = int(np.argmax(cross))
    # the peak's own foot, as wide as jitter and drift make it
    left, right = top, top
    half = middle + 0.25 * (cross[top] - middle)
    while left > 0 and cross[left - 1] > half:
        left -= 1
    while right < len(cross) - 1 and cross[right + 1] > half:
        right += 1
    rest = np.concatenate([cross[: max(0, left - 3)], cross[right + 4 :]])
    # few events meet at few lags: there the median absolute deviation is 0 and the standard deviation is not
    noise = max(MAD_SD * float(np.median(np.abs(rest - middle))), float(np.std(rest))) if len(rest) > 8 else 0.0
    if noise <= 1e-12 * abs(float(cross[top])):
        return NO_LAG
    height = (float(cross[top]) - middle) / noise
    rival = (float(np.max(rest)) - middle) / (float(cross[top]) - middle)
    weight = np.maximum(cross[left : right + 1] - half, 0)
    centre = float(np.sum(weight * np.arange(left, right + 1)) / np.sum(weight)) if right > left else float(top)
    return Lag((centre - span) * width, width * (1 + right - left), height, rival)


def _nearest(left: Times, right: Times, offset: Floats) -> tuple[np.ndarray[Any, Any], Floats]:
    wanted = left + offset.astype(np.int64)
    at = np.clip(np.searchsorted(right, wanted), 1, max(1, len(right) - 1))
    if len(right) > 1:
        at = at - (wanted - right[at - 1] < right[at] - wanted)
    else:
        at = np.zeros(len(left), np.intp)
    return at, (right[at] - left).astype(np.float64)


def _grid(times: Times, values: Floats, start: int, step: int, bins: int) -> Floats:
    at = (times - start) // step
    known = np.isfinite(values)
    count = np.bincount(at[known], minlength=bins)
    total = np.bincount(at[known], weights=values[known], minlength=bins)
    have = np.flatnonzero(count)
    if not len(have):
        return np.zeros(bins)
    return np.interp(np.arange(bins), have, total[have] / count[have])
