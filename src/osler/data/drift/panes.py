"""Windows as rings of panes: by rows or by event time, with rows that come late.

A pane is the part of a stream between two judgements; a window is the last `panes` of them. Panes hold counts, so a window
slides without a row being kept.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from osler.data.need import DataError

Ints = NDArray[np.int64]
NAT = int(np.iinfo(np.int64).min)

_UNITS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9, "w": 7 * 86_400 * 10**9}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h|d|w)", re.IGNORECASE)


def span(value: Any, what: str) -> tuple[bool, int]:
    """Whether a length is a time, and how many nanoseconds or rows it is.

    Args:
        value: a number of rows; or a time as text (`15min`, `1h`, `7d`), `timedelta` or `numpy.timedelta64`.
        what: its name in messages.

    Raises:
        DataError: it is none of these, or not positive.
    """
    length = 0
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, str):
        match = _SPAN.fullmatch(value.strip())
        if match is None:
            raise DataError(f"{what}={value!r} is no length: give rows (1000) or a time such as 15min, 1h, 7d")
        length = round(float(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(value, dt.timedelta):
        length = (value // dt.timedelta(microseconds=1)) * 1000
    elif isinstance(value, np.timedelta64):
        length = int(value.astype("timedelta64[ns]").astype(np.int64))
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if value < 1:
            raise DataError(f"{what}={value} rows: it must be at least 1")
        return False, int(value)
    else:
        raise DataError(f"{what} is {type(value).__name__}: give rows (1000) or a time such as 15min, 1h, 7d")
    if length < 1:
        raise DataError(f"{what}={value} is no length: it must be longer than 0")
    return True, length


class Clock(Protocol):
    """Says to which pane a row belongs, and which panes are complete."""

    @property
    def ready(self) -> int:
        """Panes below this one are complete."""
        ...

    def parts(self, rows: int, times: Ints | None, closed: int) -> Iterator[tuple[int, slice | Ints]]:
        """Panes of `rows` new rows and the rows of each, given that panes below `closed` are closed."""
        ...


class RowClock:
    """Panes of so many rows each, in the order in which the rows come.

    Attributes:
        ready: panes below this one are complete.
        seen: rows so far.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen = 0

    @property
    def ready(self) -> int:
        """Panes below this one are complete."""
        return self.seen // self.every

    def parts(self, rows: int, times: Ints | None, closed: int) -> Iterator[tuple[int, slice | Ints]]:
        """See `Clock`."""
        start = 0
        while start < rows:
            take = min(self.every - self.seen % self.every, rows - start)
            pane = self.seen // self.every
            self.seen += take
            yield pane, slice(start, start + take)
            start += take


class EventClock:
    """Panes of event time, aligned to whole multiples of their length since 1970 UTC.

    A pane is complete when a row has been seen whose time lies `lateness` beyond its end.

    Attributes:
        latest: the latest time seen, in nanoseconds.
        late: rows that came after their pane was closed.
        ahead: rows whose time lay implausibly far ahead of the rest of their batch.
        untimed: rows without a time.
    """

    def __init__(self, every: int, lateness: int, most_ahead: int) -> None:
        self.every = every
        self.lateness = lateness
        self.most_ahead = most_ahead
        self.latest = NAT
        self.late = self.ahead = self.untimed = 0

    @property
    def ready(self) -> int:
        """Panes below this one are complete."""
        return NAT if self.latest == NAT else (self.latest - self.lateness) // self.every

    def parts(self, rows: int, times: Ints | None, closed: int) -> Iterator[tuple[int, slice | Ints]]:
        """See `Clock`."""
        assert times is not None
        known = np.flatnonzero(times != NAT)
        self.untimed += rows - len(known)
        if not len(known):
            return
        at = times[known]
        middle = int(np.partition(at, len(at) // 2)[len(at) // 2])
        far = at > middle + self.most_ahead
        if far.any():
            self.ahead += int(far.sum())
            known, at = known[~far], at[~far]
        pane = at // self.every
        late = pane < closed
        if late.any():
            self.late += int(late.sum())
            known, at, pane = known[~late], at[~late], pane[~late]
            if not len(known):
                return
        self.latest = max(self.latest, int(at.max()))
        if pane[0] == pane[-1] and (pane == pane[0]).all():
            whole = len(known) == rows
            yield int(pane[0]), slice(0, rows) if whole else known
            return
        for one in np.unique(pane):
            yield int(one), known[pane == one]


def stamps(time: Any, rows: int) -> Ints:
    """Nanoseconds since 1970 UTC for each of `rows` rows, from one time or from one a row.

    Args:
        time: datetimes (those without a zone are UTC), `datetime64`, text in ISO 8601, or nanoseconds as integers.
        rows: how many are needed.

    Raises:
        DataError: they are no times, or not as many as rows.
    """
    import pyarrow as pa

    from osler.data.tables import times

    try:
        if isinstance(time, (pa.Array, pa.ChunkedArray)):
            out = times(time)
        else:
            array = np.asarray(_naive(time))
            if array.dtype.kind in "iu":
                out = array.astype(np.int64)
            else:
                out = array.astype("datetime64[ns]").astype(np.int64)
    except (TypeError, ValueError) as error:
        raise DataError(f"time holds no times: {str(error).splitlines()[0]}") from None
    out = np.atleast_1d(out)
    if len(out) == 1 and rows != 1:
        out = np.full(rows, out[0])
    if out.ndim != 1 or len(out) != rows:
        raise DataError(f"time has {len(out)} entries and the batch {rows} rows")
    return np.ascontiguousarray(out)


def _naive(time: Any) -> Any:
    """Zone-aware datetimes as UTC without a zone, which is what numpy takes."""
    if isinstance(time, dt.datetime):
        return time.astimezone(dt.timezone.utc).replace(tzinfo=None) if time.tzinfo else time
    if isinstance(time, (list, tuple)):
        return [_naive(one) for one in time]
    if hasattr(time, "dtype") and getattr(time.dtype, "tz", None) is not None:  # a pandas series with a zone
        return time.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    return time


def text(nanoseconds: int) -> str:
    """A time in ISO 8601, to the second."""
    return str(np.datetime64(nanoseconds, "ns").astype("datetime64[s]")) + "Z"
