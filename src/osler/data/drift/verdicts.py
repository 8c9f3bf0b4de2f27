"""What was found in a window, and how often in a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from osler.data.drift.judge import DRIFT, NOT_JUDGED, ColumnVerdict
from osler.data.drift.panes import text


@dataclass(frozen=True, slots=True)
class WindowVerdict:
    """One window.

    Attributes:
        index: of the window, counted from 0.
        start, end: of the window, `end` excluded: nanoseconds since 1970 UTC, or rows of the stream.
        timed: whether these are times.
        rows: rows in it.
        judged: whether it was compared; a window with too few rows, or the left-over part of one, is not.
        why: why it was not judged.
        columns: what was found about each column; empty where it was not judged.
        drifted: columns that drifted in it.
        runs: for each of these, windows in a row in which it has drifted, this one included.
        resample: columns that reached the run at which fresh samples are asked for, in this window.
        sequential: columns whose sequential test had alarmed by its end.
    """

    index: int
    start: int
    end: int
    timed: bool
    rows: int
    judged: bool
    why: str = ""
    columns: tuple[ColumnVerdict, ...] = field(default=(), repr=False, compare=False)
    drifted: tuple[str, ...] = ()
    runs: dict[str, int] = field(default_factory=dict)
    resample: tuple[str, ...] = ()
    sequential: tuple[str, ...] = ()

    @property
    def span(self) -> str:
        """From when to when, or from which row to which."""
        return f"{text(self.start)} to {text(self.end)}" if self.timed else f"rows {self.start} to {self.end - 1}"

    def effects(self) -> dict[str, float]:
        """How far each judged column moved: KS distance of numbers, Jensen–Shannon distance of categories, or the change
        of the missing or infinite share, whichever is largest."""
        return {c.name: effect(c) for c in self.columns if c.verdict != NOT_JUDGED}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: no value of the data, only places, counts and names of columns."""
        return {
            "index": self.index,
            "start": self.start,
            "end": self.end,
            "timed": self.timed,
            "rows": self.rows,
            "judged": self.judged,
            "why": self.why,
            "drifted": list(self.drifted),
            "runs": self.runs,
            "resample": list(self.resample),
            "sequential": list(self.sequential),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> WindowVerdict:
        """The reverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is no such dict.
        """
        return cls(
            index=int(data["index"]),
            start=int(data["start"]),
            end=int(data["end"]),
            timed=bool(data["timed"]),
            rows=int(data["rows"]),
            judged=bool(data["judged"]),
            why=str(data["why"]),
            drifted=tuple(map(str, data["drifted"])),
            runs={str(k): int(v) for k, v in data["runs"].items()},
            resample=tuple(map(str, data["resample"])),
            sequential=tuple(map(str, data["sequential"])),
        )


def effect(column: ColumnVerdict) -> float:
    """The measure that a window's curve shows for a column."""
    distance = column.ks.low if column.ks is not None else (column.js or 0.0)
    return max(distance, abs(column.missing[1] - column.missing[0]), abs(column.infinite[1] - column.infinite[0]))


@dataclass(frozen=True, slots=True)
class Resample:
    """Why fresh samples are asked for.

    Attributes:
        reason: `run` (a column drifted in so many windows in a row) or `sequential` (its test alarmed).
        columns: the columns.
        run: windows in a row; 0 for a sequential test.
        window: the window in which it was decided.
    """

    reason: str
    columns: tuple[str, ...]
    run: int
    window: WindowVerdict

    def to_dict(self) -> dict[str, object]:
        """What a webhook is sent: places, counts, distances, names of columns, never a value of the data."""
        w = self.window
        found = {c.name: c for c in w.columns}
        told: list[dict[str, object]] = []
        for name in self.columns:
            one: dict[str, object] = {"column": name}
            if name in found:
                one |= {"reasons": list(found[name].reasons), "effect": effect(found[name]), "p": found[name].p}
            told.append(one)
        start, end = (text(w.start), text(w.end)) if w.timed else (w.start, w.end)
        return {
            "event": "resample",
            "reason": self.reason,
            "run": self.run,
            "window": {"index": w.index, "start": start, "end": end, "rows": w.rows},
            "columns": told,
        }


class Runs:
    """Counts windows in a row, column by column.

    Windows that could not be judged neither lengthen a run nor break it.

    Attributes:
        needed: windows in a row at which a run is full.
        lengths: current run of each column that drifted in the last judged window.
    """

    def __init__(self, needed: int, lengths: dict[str, int] | None = None) -> None:
        self.needed = needed
        self.lengths = dict(lengths or {})

    def add(self, columns: Iterable[ColumnVerdict]) -> tuple[str, ...]:
        """Take a judged window into account; the columns whose run became full in it."""
        drifted = [c.name for c in columns if c.verdict == DRIFT]
        self.lengths = {name: self.lengths.get(name, 0) + 1 for name in drifted}
        return tuple(name for name, length in self.lengths.items() if length == self.needed)
