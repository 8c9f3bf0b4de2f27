"""Strict JSON: non-finite numbers become the strings "NaN", "Infinity", "-Infinity"."""

from __future__ import annotations

import json
import math


def strict(value: object) -> object:
    """A copy of `value` that strict JSON can hold. Tuples and sets become lists, keys become strings."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else word(value)
    if isinstance(value, dict):
        return {str(k): strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return [strict(v) for v in sorted(value, key=str)]
    return str(value)


def word(value: float) -> str:
    """The agreed string for a non-finite number."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def number(value: object) -> float:
    """The number behind a strict-JSON value: a number, or one of the three strings.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(str(value).replace("Infinity", "inf"))
    raise ValueError(f"{value!r} is not a number")


def dumps(value: object, indent: int | None = None) -> str:
    """`value` as strict JSON; surrogates from odd file names are escaped, so the text always encodes."""
    return json.dumps(strict(value), allow_nan=False, ensure_ascii=True, indent=indent)
