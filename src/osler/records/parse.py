"""One journal line as a record, whatever stands in it. Nothing here raises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from osler.core.finding import Finding, Where
from osler.core.jsonable import number

MAX_LINE = 64 * 1024 * 1024  # bytes; a longer line is none of ours
_DEEP = 24  # levels of nesting kept in evidence and facts
_WORDS = ("file", "function", "module", "parameter", "tensor", "optimizer", "column", "direction", "op")
_NUMBERS = ("line", "step", "epoch", "batch", "sample", "rank")


def record(line: bytes) -> dict[str, object] | None:
    """The JSON object on that line; None where there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("t"), str) else None


def whole(value: object) -> int | None:
    """`value` as an integer that 64 bits hold; None where it is no integer."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return min(max(value, -(2**63)), 2**63 - 1)


def real(value: object) -> float | None:
    """`value`, a number or one of the agreed words, as a float; None where it is neither."""
    try:
        return number(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except (ValueError, TypeError):
        return None


def text(value: object) -> str | None:
    """`value` where it is a string."""
    return value if isinstance(value, str) else None


def plain(value: object, depth: int = 0) -> object:
    """A copy of a JSON value with what later readers choke on made small: nesting and integers without bounds."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**63 else real(value)
    if depth >= _DEEP:
        return "..." if isinstance(value, (dict, list)) else value
    if isinstance(value, dict):
        return {str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v, depth + 1) for v in value]
    return value


def mapping(value: object) -> dict[str, object]:
    """`value` where it is an object, made plain; else an empty one."""
    return {str(k): plain(v) for k, v in value.items()} if isinstance(value, dict) else {}


def finding(data: object) -> Finding | None:
    """The finding behind `Finding.to_dict()`, its types checked; None where it is none."""
    if not isinstance(data, Mapping):
        return None
    facts = dict(data)
    if not all(isinstance(facts.get(k), str) for k in ("rule", "severity", "confidence", "message")):
        return None
    facts["evidence"] = mapping(facts.get("evidence"))
    facts["fix"] = text(facts.get("fix")) or ""
    for name in ("first_step", "last_step", "count"):
        facts[name] = whole(facts.get(name))
    facts["count"] = max(facts["count"] or 1, 1)
    facts["where"] = {}
    try:
        out = Finding.from_dict(facts)
    except (KeyError, ValueError, TypeError):
        return None
    out.where = where(data.get("where"))
    return out


def where(data: object) -> Where:
    """The place behind `Where.to_dict()`; fields of another type than theirs are left out."""
    if not isinstance(data, Mapping):
        return Where()
    out: dict[str, object] = {k: data[k] for k in _WORDS if isinstance(data.get(k), str)}
    out.update({k: v for k in _NUMBERS if (v := whole(data.get(k))) is not None})
    return Where.from_dict(out)


def steps_and_values(data: Mapping[str, object]) -> tuple[list[int], list[float]]:
    """The points of a `points` record; pairs that are not two numbers are left out."""
    steps, values = data.get("steps"), data.get("values")
    if not isinstance(steps, list) or not isinstance(values, list):
        return [], []
    pairs = [(whole(s), real(v)) for s, v in zip(steps, values, strict=False)]
    good = [(s, v) for s, v in pairs if s is not None and v is not None]
    return [s for s, _ in good], [v for _, v in good]
