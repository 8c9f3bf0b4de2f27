"""How likely a value beyond everything seen is, from the shape of the reference's tail.

A bound of so many spreads cries on every heavy-tailed column. Here the tail itself is extrapolated: its shape is estimated by
the moment estimator (Dekkers, Einmahl & de Haan 1989), taken two standard errors heavier than estimated, and the exceedance
probability follows from the generalised Pareto law (de Haan & Ferreira 2006, "Extreme Value Theory", section 4.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from osler.data.missing.columns import Floats

# The tail is the outermost twentieth, within these numbers of values; fewer say nothing about its shape.
_SHARE, _FEWEST, _MOST = 0.05, 20, 500
# Fewer different values than this in the tail: a lattice, whose gaps the law does not describe.
_DISTINCT = 10
_HEAVIER = 2.0


@dataclass(frozen=True, slots=True)
class Tail:
    """The upper tail of a sample, measured from `origin` in the direction `sign`.

    Attributes:
        origin: median of the sample.
        sign: 1 for the upper, -1 for the lower tail.
        start: distance from the origin at which the tail begins.
        weight: share of the sample beyond it.
        scale: scale of the excess over it.
        shape: extreme value index, two standard errors above its estimate.
    """

    origin: float
    sign: int
    start: float
    weight: float
    scale: float
    shape: float

    def probability(self, values: Floats) -> Floats:
        """(n,): chance that one further value lies at or beyond each value; 1 inside the body."""
        excess = (self.sign * (values - self.origin) - self.start) / self.scale
        if abs(self.shape) < 1e-6:
            beyond = np.exp(-np.maximum(excess, 0.0))
        else:
            beyond = np.maximum(1 + self.shape * np.maximum(excess, 0.0), 0.0) ** (-1 / self.shape)
        return np.where(excess <= 0, 1.0, self.weight * beyond)


def tail_of(ordered: Floats, sign: int) -> Tail | None:
    """The tail of an ascending sample (n,) of finite values; None where it cannot be judged."""
    n = len(ordered)
    origin = float(np.median(ordered))
    distances = (ordered[::-1] - origin) if sign > 0 else (origin - ordered)
    k = int(np.clip(_SHARE * n, _FEWEST, _MOST))
    k = min(k, int((distances > 0).sum()) - 1)
    if k < _FEWEST:
        return None
    start, top = float(distances[k]), distances[:k]
    if len(np.unique(top)) < _DISTINCT or start <= 0:
        return None
    logs = np.log(top / start)
    first, second = float(logs.mean()), float(np.square(logs).mean())
    if first <= 0 or second <= first**2:
        return None
    negative = 1 - 0.5 / (1 - first**2 / second)
    shape = first + negative
    scale = start * first * (1 - min(negative, 0.0))
    return Tail(origin, sign, start, k / n, scale, shape + _HEAVIER * _error(shape) / math.sqrt(k))


def _error(shape: float) -> float:
    """Asymptotic standard deviation of the moment estimator times the root of k."""
    if shape >= 0:
        return math.sqrt(1 + shape**2)
    g = shape
    return math.sqrt((1 - g) ** 2 * (1 - 2 * g) * (1 - g + 6 * g**2) / ((1 - 3 * g) * (1 - 4 * g)))
