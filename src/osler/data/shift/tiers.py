"""How far is too far: the tiers, and the thresholds that lead to them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from osler.data.shift.null import Null


class Tier(IntEnum):
    """What a shift asks for.

    SILENT: nothing. ALERT: collect fresh samples. FREEZE: stop relying on the model and train anew.
    """

    SILENT = 0
    ALERT = 1
    FREEZE = 2

    @property
    def label(self) -> str:
        """The word used in output."""
        return self.name.lower()


class Threshold(NamedTuple):
    """Where the tiers of one statistic begin.

    Attributes:
        alert, freeze: values from which on the tier applies; never below the configured floors.
        null: typical value on identical data, which has been taken off the statistic already where it is a divergence.
        floor: the configured alert floor, to tell whether the data have lifted the threshold.
    """

    alert: float
    freeze: float
    null: float
    floor: float

    def tier(self, value: float) -> Tier:
        """The tier of a value of the statistic."""
        if value >= self.freeze:
            return Tier.FREEZE
        return Tier.ALERT if value >= self.alert else Tier.SILENT


def calibrated(alert: float, freeze: float, null_at_level: float, null: float, own: float = 0.0) -> Threshold:
    """Floors lifted to what identical data do.

    The freeze threshold keeps its configured ratio to the alert threshold.

    Args:
        alert, freeze: the configured floors.
        null_at_level: the value that identical data exceed at the stated false-alarm rate.
        null: typical value on identical data.
        own: the largest value among consecutive windows of the reference itself, where that is larger.
    """
    lifted = max(alert, null_at_level, own)
    return Threshold(lifted, lifted * max(freeze / alert, 1.0), null, alert)


def excess(null: Null, level: float) -> float:
    """How far above the null's mean identical data rise with probability `level`."""
    return max(null.quantile(level) - null.mean, 0.0)
