"""A setting as a dataclass field, with what it does, where its default comes from, and where it makes sense."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Bounds:
    """The interval in which a setting makes sense. `open_low` leaves `low` itself out."""

    low: float = 0.0
    high: float = math.inf
    open_low: bool = False

    def holds(self, value: float) -> bool:
        """Whether the value lies inside; a value that is not finite never does."""
        above = value > self.low if self.open_low else value >= self.low
        return math.isfinite(value) and above and value <= self.high

    def __str__(self) -> str:
        low = f"greater than {self.low:g}" if self.open_low else f"at least {self.low:g}"
        return low if math.isinf(self.high) else f"{low} and at most {self.high:g}"


SHARE = Bounds(0, 1, open_low=True)
POSITIVE = Bounds(0, open_low=True)
ANY = Bounds()


def threshold(
    default: Any,
    doc: str,
    source: str,
    rules: tuple[str, ...] = (),
    bounds: Bounds = ANY,
    choices: tuple[str, ...] = (),
) -> Any:
    """A dataclass field for a setting.

    Args:
        default: the value when nothing is configured.
        doc: what it does, with its unit.
        source: where the default comes from: a paper, documentation, or a measurement in `docs/`.
        rules: the rules that it steers.
        bounds: outside these it switches off what it steers, or makes it cry on everything, without saying so.
        choices: the words that a text may be; empty: any.
    """
    metadata = {"doc": doc, "source": source, "rules": rules, "bounds": bounds, "choices": choices}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)
