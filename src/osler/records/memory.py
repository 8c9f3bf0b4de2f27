"""A sink in memory, for `osler.watch()`. Runs inside the user's process: standard library only."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from osler.core.finding import Finding
from osler.core.jsonable import strict
from osler.core.report import Report, Series
from osler.records.merge import cells, not_checked
from osler.records.thin import Curve, HeatMap

if TYPE_CHECKING:
    from osler.core.sink import Sink

MAX_LINES = 10_000  # findings, and as many of each other kind


class MemorySink:
    """Collects a report. Memory is bounded: curves and heat maps are thinned (see `osler.records.thin`).

    Args:
        folder: where files such as dumps may be written; None: nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._started = time.time()
        self._ended: float | None = None
        self._steps: int | None = None
        self._findings: dict[str, Finding] = {}
        self._curves: dict[str, Curve] = {}
        self._maps: dict[str, HeatMap] = {}
        self._not_checked: dict[tuple[str, str], None] = {}
        self._overhead: dict[str, object] = {}
        self._environment: dict[str, object] = {}
        self._layers: list[dict[str, object]] = []
        self._notes: dict[str, None] = {}

    def awake(self, torch: str | None) -> None:
        """The probes are in place."""
        if torch is not None:
            self.environment({"torch": torch})

    def finding(self, finding: Finding) -> None:
        """A new finding."""
        try:
            with self._lock:
                key = finding.key
                if key in self._findings:
                    known = self._findings[key]
                    self.again(key, known.count + finding.count, finding.last_step)
                elif len(self._findings) < MAX_LINES:
                    self._findings[key] = replace(finding)
        except Exception:
            pass

    def again(self, key: str, count: int, last_step: int | None) -> None:
        """The finding of that key was seen again: its total count and the last step."""
        try:
            with self._lock:
                known = self._findings.get(key)
                if known is not None:
                    known.count = max(known.count, count)
                    if last_step is not None:
                        known.last_step = max(last_step, last_step if known.last_step is None else known.last_step)
        except Exception:
            pass

    def points(self, series: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """More points of a curve."""
        try:
            with self._lock:
                curve = self._curves.setdefault(str(series), Curve())
                for step, value in zip(steps, values, strict=False):
                    curve.add(int(step), float(value))
        except Exception:
            pass

    def matrix(self, series: str, rows: Sequence[str], steps: Sequence[int], values: Sequence[Sequence[float]]) -> None:
        """More columns of a heat map: `values[i][j]` belongs to `steps[i]` and `rows[j]`."""
        try:
            with self._lock:
                heat_map = self._maps.setdefault(str(series), HeatMap())
                for step, column in zip(steps, values, strict=False):
                    heat_map.add(rows, int(step), column)
        except Exception:
            pass

    def not_checked(self, what: str, why: str) -> None:
        """A rule, or a thing, that could not be judged, and the reason in one sentence."""
        with self._lock:
            if len(self._not_checked) < MAX_LINES:
                self._not_checked.setdefault((str(what), str(why)))

    def overhead(self, figures: Mapping[str, float | int | str]) -> None:
        """The watcher's own cost so far; the last call holds."""
        try:
            self._overhead = dict(figures)
        except Exception:
            pass

    def environment(self, facts: Mapping[str, object]) -> None:
        """Facts about the process."""
        try:
            with self._lock:
                self._environment.update({str(k): strict(v) for k, v in facts.items()})
        except Exception:
            pass

    def layers(self, rows: Sequence[Mapping[str, object]]) -> None:
        """The module calls of one step."""
        try:
            self._layers = [dict(r) for r in rows]
        except Exception:
            pass

    def note(self, text: str) -> None:
        """One line for the user."""
        with self._lock:
            if len(self._notes) < MAX_LINES:
                self._notes.setdefault(str(text))

    def folder(self, name: str) -> Path | None:
        """The folder of that name, mode 0700; None where nothing can be written."""
        try:
            if self._folder is None or name in ("", ".", "..") or "/" in name:
                return None
            path = self._folder / name
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return path if os.access(path, os.W_OK | os.X_OK) else None
        except Exception:
            return None

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self, steps: int) -> None:
        """The watch ends after that many optimizer steps."""
        self._steps = steps
        self._ended = time.time()

    def findings(self) -> list[Finding]:
        """The findings so far, in the order in which they were seen."""
        with self._lock:
            return [replace(f) for f in self._findings.values()]

    def report(self) -> Report:
        """The report so far; it does not change when more comes in."""
        from osler import __version__

        with self._lock:
            series = []
            for name, curve in self._curves.items():
                steps, values = curve.result()
                series.append(Series(name, "curve", steps, values))
            for name, heat_map in self._maps.items():
                rows, at, columns = heat_map.result()
                series.append(Series(name, "heatmap", at, cells(columns), rows=rows))
            subject: dict[str, object] = {"kind": "watch", "started": self._started}
            subject["seconds"] = (self._ended or time.time()) - self._started
            if self._steps is not None:
                subject["steps"] = self._steps
            return Report(
                subject=subject,
                environment=dict(self._environment),
                findings=self.findings(),
                not_checked=not_checked(self._not_checked),
                overhead=dict(self._overhead),
                series=series,
                notes=list(self._notes),
                layers=[dict(r) for r in self._layers],
                version=__version__,
            )


if TYPE_CHECKING:
    _is_a_sink: Sink = MemorySink(None)
