"""Numbers in messages, and how bad a share is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from osler.core.finding import Severity
from osler.core.settings.splits import Splits


def count(n: int, noun: str) -> str:
    """`1,204 rows`, `1 row`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def share(part: float, whole: float) -> str:
    """`12.0 %`, `0.03 %`."""
    percent = 100 * part / whole if whole else 0.0
    if percent and percent < 0.1:
        return f"{percent:.2g} %"
    return f"{percent:.1f} %"


def by_share(part: float, whole: float, settings: Splits) -> Severity:
    """Error, warning or information, by the share of evaluation rows that are compromised; a few rows are information."""
    if part < settings.least_rows:
        return Severity.INFO
    value = part / whole if whole else 0.0
    if value >= settings.error_share:
        return Severity.ERROR
    return Severity.WARNING if value >= settings.warning_share else Severity.INFO


def listed_rows(rows: npt.NDArray[np.int64], settings: Splits) -> list[int]:
    """The first row numbers, ascending, as many as a finding lists."""
    return [int(r) for r in np.sort(rows)[: settings.positions]]
