"""Values in another unit than training's: grams for kilograms, cents for euros, Fahrenheit for Celsius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Floats


@dataclass(frozen=True, slots=True)
class Unit:
    """current = factor × training + offset."""

    factor: float
    offset: float
    text: str

    def back(self, values: Floats) -> Floats:
        """Values in the unit of training."""
        return (values - self.offset) / self.factor


def _both(factor: float, there: str, back: str) -> tuple[Unit, Unit]:
    return Unit(factor, 0.0, there), Unit(1 / factor, 0.0, back)


UNITS: tuple[Unit, ...] = (
    *(u for n in (10, 100, 1_000, 1_000_000) for u in _both(n, f"×{n:,}", f"÷{n:,}")),
    Unit(1.8, 32.0, "degrees Fahrenheit for Celsius"),
    Unit(1 / 1.8, -32 / 1.8, "degrees Celsius for Fahrenheit"),
    Unit(1.0, 273.15, "kelvin for degrees Celsius"),
    Unit(1.0, -273.15, "degrees Celsius for kelvin"),
    *_both(60, "×60, minutes for hours or seconds for minutes", "÷60, hours for minutes or minutes for seconds"),
    *_both(3_600, "×3,600, seconds for hours", "÷3,600, hours for seconds"),
    *_both(2.54, "centimetres for inches", "inches for centimetres"),
    *_both(2.20462, "pounds for kilograms", "kilograms for pounds"),
    *_both(1.609344, "kilometres for miles", "miles for kilometres"),
    *_both(3.28084, "feet for metres", "metres for feet"),
)


def whole_column(reference: Floats, current: Floats, settings: Missing) -> Unit | None:
    """The unit in which the current column looks like the reference, where it clearly does and is far off as it stands.

    Args:
        reference, current: ascending finite values.
    """
    if min(len(reference), len(current)) < settings.min_rows:
        return None
    if distance(reference, current) < settings.unit_far:
        return None
    found = sorted(((distance(reference, unit.back(current)), i) for i, unit in enumerate(UNITS)))
    best, place = found[0]
    # two units that fit equally well name none
    if best > settings.unit_near or found[1][0] < 1.5 * best:
        return None
    return UNITS[place]


def some_rows(reference: Floats, outside: Floats, settings: Missing) -> Unit | None:
    """The unit in which values that lie outside the reference would be ordinary ones.

    Args:
        reference: ascending finite values.
        outside: the values outside.
    """
    if len(outside) < settings.unit_rows:
        return None
    low, q1, middle, q3, high = np.percentile(reference, [0.5, 25, 50, 75, 99.5])
    spread = (q3 - q1) or 1.0
    fits = []
    for i, unit in enumerate(UNITS):
        back = unit.back(outside)
        if ((back >= low) & (back <= high)).mean() >= 0.95:
            fits.append((abs(float(np.median(back)) - middle) / spread, i))
    if not fits:
        return None
    off, place = min(fits)
    return UNITS[place] if off <= 1.0 else None


def distance(a: Floats, b: Floats) -> float:
    """Kolmogorov-Smirnov distance of two ascending samples."""
    every = np.concatenate([a, b])
    above = np.searchsorted(a, every, "right") / len(a) - np.searchsorted(b, every, "right") / len(b)
    return float(np.abs(above).max())
