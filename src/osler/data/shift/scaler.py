"""Features in the units of the reference, with wild values held in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_INNER = (0.001, 0.999)
_LEAST_SHARE = 0.05  # of the range: the scale of a flag that is set in one row of a thousand


@dataclass(frozen=True, slots=True)
class Scaler:
    """Clips and standardises by what the reference did.

    Attributes:
        low, high: limits of each feature, shape [d].
        mean, scale: of the clipped reference, shape [d].
    """

    low: Floats
    high: Floats
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: Floats, reach: float) -> Scaler:
        """The scaler of reference rows of shape [n, d], none of whose features is constant.

        Args:
            reach: multiple of the distance from the median to the 0.1 % and 99.9 % quantiles that is left unclipped. Where
                that distance is 0 (flags, counts that are nearly always 0) the extremes take the place of the quantiles.
        """
        inner_low, median, inner_high = np.quantile(rows, [_INNER[0], 0.5, _INNER[1]], axis=0)
        least, most = rows.min(axis=0), rows.max(axis=0)
        below = np.where(median > inner_low, reach * (median - inner_low), median - least)
        above = np.where(inner_high > median, reach * (inner_high - median), most - median)
        low, high = median - below, median + above
        inner = np.where(inner_high > inner_low, inner_high - inner_low, most - least)
        clipped = np.clip(rows, low, high)
        mean = clipped.mean(axis=0)
        return cls(low, high, mean, np.maximum(clipped.std(axis=0), _LEAST_SHARE * inner))

    def apply(self, rows: Floats) -> Floats:
        """Rows of shape [n, d] in standard deviations of the reference."""
        out = np.clip(rows, self.low, self.high)
        out -= self.mean
        out /= self.scale
        return out
