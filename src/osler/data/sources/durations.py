"""Durations and rates as text, and back."""

from __future__ import annotations

import datetime as dt
import math
import re

from osler.data.need import DataError

NS_PER_S = 1_000_000_000
_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_S,
    "sec": NS_PER_S,
    "second": NS_PER_S,
    "seconds": NS_PER_S,
    "m": 60 * NS_PER_S,
    "min": 60 * NS_PER_S,
    "minute": 60 * NS_PER_S,
    "minutes": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
    "hour": 3600 * NS_PER_S,
    "hours": 3600 * NS_PER_S,
    "d": 86400 * NS_PER_S,
    "day": 86400 * NS_PER_S,
    "days": 86400 * NS_PER_S,
    "w": 7 * 86400 * NS_PER_S,
    "week": 7 * 86400 * NS_PER_S,
    "weeks": 7 * 86400 * NS_PER_S,
}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµμ]+)", re.IGNORECASE)
_ISO = re.compile(
    r"P(?:(?P<w>\d+(?:[.,]\d+)?)W)?(?:(?P<d>\d+(?:[.,]\d+)?)D)?"
    r"(?:T(?:(?P<h>\d+(?:[.,]\d+)?)H)?(?:(?P<min>\d+(?:[.,]\d+)?)M)?(?:(?P<s>\d+(?:[.,]\d+)?)S)?)?",
    re.IGNORECASE,
)
_RATE = re.compile(r"\s*([0-9.eE+-]+)\s*(m|k|M)?hz\s*", re.IGNORECASE)
_PER = re.compile(r"\s*([0-9.]+)\s*/\s*([a-zµμ]+)\s*", re.IGNORECASE)
_LONGEST = 9.2e18


def parse_duration(value: object, what: str = "a duration") -> int:
    """A duration in whole nanoseconds.

    Args:
        value: text such as `500ms`, `2s`, `1h30m` (`m` is a minute), `-5 min`, ISO 8601 without years and months
            (`PT0.5S`, `P1DT2H`), a `datetime.timedelta`, a `numpy.timedelta64`, or a number of seconds.
        what: what it is for, as the beginning of an error message.

    Raises:
        DataError: it is none of these, not finite, or longer than 292 years.
    """
    seconds: float | None = None
    if isinstance(value, dt.timedelta):
        return _whole((value.days * 86400 + value.seconds) * NS_PER_S + value.microseconds * 1000, value, what)
    if hasattr(value, "dtype") and getattr(value.dtype, "kind", "") == "m":
        seconds = float(value / _second())  # type: ignore[operator]
    elif isinstance(value, bool) or value is None:
        seconds = None
    elif isinstance(value, (int, float)) or hasattr(value, "__float__"):
        seconds = float(value)
    elif isinstance(value, str):
        return _whole(_text(value, what), value, what)
    if seconds is None or not math.isfinite(seconds):
        raise DataError(f"{what} {value!r} is no length of time; write it like 500ms, 2s, 1h or PT0.5S")
    return _whole(seconds * NS_PER_S, value, what)


def _second() -> object:
    import numpy as np

    return np.timedelta64(1, "s")


def _whole(ns: float, value: object, what: str) -> int:
    if abs(ns) > _LONGEST:
        raise DataError(f"{what} {value!r} is longer than 292 years")
    return round(ns)


def _text(text: str, what: str) -> float:
    body = text.strip()
    sign = -1 if body.startswith("-") else 1
    body = body.lstrip("+-").strip()
    iso = _ISO.fullmatch(body)
    if iso and any(iso.groupdict().values()):
        return sign * sum(float(v.replace(",", ".")) * _UNITS[unit] for unit, v in iso.groupdict().items() if v)
    total, at = 0.0, 0
    while at < len(body):
        part = _PART.match(body, at)
        unit = part and (_UNITS.get(part[2]) or _UNITS.get(part[2].lower()))
        if not part or not unit or part[2] == "M":
            break
        total += float(part[1]) * unit
        at = part.end()
        while body[at : at + 1].isspace():
            at += 1
    if not body or at < len(body):
        bare = re.fullmatch(r"[0-9.]+", body)
        hint = f"; {body} of what? write {body}s or {body}ms" if bare else "; write it like 500ms, 2s, 1h30m or PT0.5S"
        raise DataError(f"{what} {text!r} is no length of time{hint}")
    return sign * total


def parse_rate(value: object, what: str = "a rate") -> float:
    """The interval between two rows in nanoseconds, of a rate.

    Args:
        value: text such as `10Hz`, `0.5 kHz`, `3/min`, an interval as `parse_duration` takes it (`100ms`), or a number
            of rows a second.
        what: what it is for, as the beginning of an error message.

    Raises:
        DataError: it is none of these or not greater than 0.
    """
    if isinstance(value, str):
        hertz = _RATE.fullmatch(value)
        per = _PER.fullmatch(value)
        try:
            if hertz:
                prefix = hertz[2] or ""
                scale = {"": 1.0, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6}[prefix]
                interval = NS_PER_S / (float(hertz[1]) * scale)
            elif per:
                interval = _text("1" + per[2], what) / float(per[1])
            else:
                interval = float(parse_duration(value, what))
        except (ValueError, ZeroDivisionError):
            interval = 0.0
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        interval = NS_PER_S / value if value > 0 else 0.0
    else:
        interval = float(parse_duration(value, what))
    if not 0 < interval < _LONGEST:
        raise DataError(f"{what} {value!r} is no rate; write it like 10Hz, 3/min or, as an interval, 100ms")
    return interval


def show(ns: float) -> str:
    """A duration for people: three figures and one unit, e.g. `500 ms`, `1 h`, `-2.35 s`, `5 h 30 min`."""
    if not math.isfinite(ns):
        return str(ns)
    size, sign = abs(ns), "-" if ns < 0 else ""
    minutes = size / (60 * NS_PER_S)
    whole = round(minutes)
    if 60 < whole < 2880 and whole % 60 and abs(minutes - whole) < 0.05:
        return f"{sign}{whole // 60} h {whole % 60} min"
    for unit, length in (
        ("d", 86400 * NS_PER_S),
        ("h", 3600 * NS_PER_S),
        ("min", 60 * NS_PER_S),
        ("s", NS_PER_S),
        ("ms", 1e6),
        ("µs", 1e3),
    ):
        if size >= (2 * length if unit == "d" else length) * (1 - 5e-4):
            return f"{sign}{size / length:.4g} {unit}"
    return f"{sign}{size:.3g} ns"
