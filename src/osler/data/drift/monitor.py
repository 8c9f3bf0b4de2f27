"""Drift watched while data come in."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from osler.core.report import Report
from osler.core.settings import Settings
from osler.data.drift import store
from osler.data.drift.intake import Intake
from osler.data.drift.judge import DRIFT, compare
from osler.data.drift.panes import EventClock, Ints, RowClock, span
from osler.data.drift.profile import Profile, build_profile
from osler.data.drift.sliding import SlidingSum
from osler.data.drift.symbols import SequentialTests
from osler.data.drift.verdicts import Resample, Runs, WindowVerdict
from osler.data.drift.webhook import Webhook
from osler.data.need import DataError
from osler.data.tables import open_source

_log = logging.getLogger("osler.drift")
Callback = Callable[[Resample], object]


class DriftMonitor:
    """Compares sliding windows of a stream with a reference, and asks for fresh samples when a drift stays.

        monitor = DriftMonitor("training.parquet", window="1h", every="10min", time="at", on_resample=ask)
        for batch in stream:
            for verdict in monitor.update(batch):
                print(verdict.span, verdict.drifted)

    Windows are made of panes of `every`, which hold counts (`osler.data.drift.grid`), never rows. A window is judged as
    `check_drift` judges: significance after correction across columns, and an effect that matters. When one column has
    drifted in `settings.monitor.runs` windows in a row, `on_resample` is called and the webhook is sent a message, once a
    run.

    What a run of three buys depends on how much the windows share. With windows that share nothing, a column that
    alarms by chance with probability p does so three times running with p³. With overlapping windows the second and third
    are mostly the first again. Measured at p = 11 % (`runs` in benchmarks/shift.py): with nine tenths of overlap 1.3 % of
    windows complete a run by chance where p³ is 0.14 %, and over the same data there are 26 times as many false triggers
    as without overlap. `settings.monitor.disjoint` lengthens the run until it holds that many windows
    without a common row. The sequential test (`settings.monitor.sequential`) does not count windows at all: the
    probability that it ever raises a false alarm is at most `settings.monitor.alpha` (`osler.data.drift.sequential`, with
    the conditions).

    Event time: pass `time`. A pane closes when a row has been seen that lies `lateness` beyond its end; rows for closed
    panes are counted as late and left out. Times without a zone are UTC. Windows with fewer than
    `settings.drift.window_rows` rows are reported as not judged; they neither lengthen a run nor break it.

    A monitor is saved with `save` (or after every closed pane with `autosave`) and continued with `load`: a process that
    was killed loses the rows since the last save and nothing else. Callbacks that raise are logged (logger
    `osler.drift`) and counted; they never reach the service. `update` may be called from several threads.

    Attributes:
        reference: the reference's profile.
        verdicts: the last judged and unjudged windows, at most `settings.monitor.history`.
        triggers: every time that fresh samples were asked for, at most as many.
        rows: rows seen.
        callback_errors: callbacks that raised.
        sequential: the sequential tests; None where they are off.
    """

    def __init__(
        self,
        reference: Any,
        *,
        window: Any,
        every: Any = None,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        settings: Settings | None = None,
        on_resample: Callback | None = None,
        webhook: str | Webhook | None = None,
        autosave: str | Path | None = None,
        collect: bool = False,
    ) -> None:
        """A monitor against a reference.

        Args:
            reference: a `Profile` (see `build_profile`) or the path of a saved one, or the reference data: whatever
                `open_source` takes.
            window: length of a window: rows, or a time (`1h`, `timedelta`).
            every: how far apart windows begin, in the same unit; it divides `window`. None: `window`, so that they share
                nothing.
            columns: columns to watch; None: all of the reference's but `time`.
            time: column that holds the time of a row, for windows of time; None: times come with `update`.
            settings: the settings tree; `drift` and `monitor` are used.
            on_resample: called with a `Resample`, in the thread that called `update`.
            webhook: URL that is sent `Resample.to_dict` as JSON, from a thread of its own.
            autosave: file that the state is saved to whenever a pane closes.
            collect: only count, judge nothing: for a part of a stream whose state is merged elsewhere.

        Raises:
            DataError: a length that is none or does not divide, an unknown column, unreadable data, a bad URL, or a
                sequential test asked for with a profile alone (it needs rows of the reference).
        """
        chosen = settings or Settings()
        sequential = None
        if store.is_profile(reference):
            reference = Profile.load(reference)
        if isinstance(reference, Profile):
            profile = reference
            if columns is not None:
                profile = Profile(reference.name, [reference.known(c) for c in columns], reference.rows)
            if chosen.monitor.sequential:
                raise DataError("a sequential test needs rows of the reference, not a profile: pass the data")
        else:
            source = open_source(reference, None if isinstance(reference, (str, Path, list)) else "reference")
            if columns is None and time is not None:
                columns = [name for name in source.names if name != time]
            if chosen.monitor.sequential and not source.repeatable:
                raise DataError(
                    f"{source.name} is a stream; a sequential test reads the reference twice: save it to a file"
                )
            profile = build_profile(source, columns=columns, settings=chosen)
            if chosen.monitor.sequential:
                sequential = SequentialTests.of(source, profile, chosen.monitor)
        timed, length = span(window, "window")
        step_timed, step = (timed, length) if every is None else span(every, "every")
        if step_timed != timed:
            raise DataError("window and every must both be rows or both be times")
        if length % step:
            raise DataError(f"every={every!r} does not divide window={window!r}")
        if time is not None and not timed:
            raise DataError(
                f"time={time!r} is of no use with windows of {length} rows: give the window as a time, e.g. 1h"
            )
        if not timed and length < chosen.drift.window_rows:
            raise DataError(
                f"windows of {length} rows are never judged: give at least {chosen.drift.window_rows} (`drift.window_rows`)"
            )
        self._start(profile, chosen, timed, length, step, time, sequential, collect)
        self.attach(on_resample=on_resample, webhook=webhook, autosave=autosave)

    def _start(
        self,
        reference: Profile,
        settings: Settings,
        timed: bool,
        length: int,
        step: int,
        time: str | None,
        sequential: SequentialTests | None,
        collect: bool,
    ) -> None:
        self.reference = reference
        self.settings = settings
        self.timed, self.length, self.step, self.collect = timed, length, step, collect
        self.intake = Intake(reference, timed, time)
        self.sequential = sequential
        self.panes: dict[int, Profile] = {}
        self._sum = SlidingSum(reference.empty("current"))
        late, ahead = round(settings.monitor.lateness * step), round(settings.monitor.ahead * length)
        self.clock: RowClock | EventClock = EventClock(step, late, ahead) if timed else RowClock(step)
        each = length // step
        runs = settings.monitor.runs
        self.run = Runs((runs - 1) * each + 1 if settings.monitor.disjoint else runs)
        self.verdicts: deque[WindowVerdict] = deque(maxlen=settings.monitor.history)
        self.triggers: deque[Resample] = deque(maxlen=settings.monitor.history)
        self.effects: deque[tuple[int, dict[str, float]]] = deque(maxlen=settings.monitor.history)
        self.rows = self.callback_errors = self.dropped_panes = 0
        self.told: set[str] = set()  # columns whose sequential alarm has been passed on
        self.next: int | None = None  # the next pane to close
        self.first: int | None = None  # the pane at which the stream began
        self.index = 0
        self.left_over: WindowVerdict | None = None  # the window that `close` found begun and not filled
        self._empty = False
        self._lock = threading.RLock()

    def attach(
        self,
        *,
        on_resample: Callback | None = None,
        webhook: str | Webhook | None = None,
        autosave: str | Path | None = None,
    ) -> DriftMonitor:
        """What is told of triggers and where the state is saved, in place of what was so far; for a loaded monitor too."""
        self.on_resample = on_resample
        self.webhook = Webhook(webhook, self.settings.monitor) if isinstance(webhook, str) else webhook
        self.autosave = Path(autosave) if autosave is not None else None
        return self

    @property
    def unusable(self) -> dict[str, int]:
        """Columns → rows in which they were absent or of another kind; these count as missing."""
        return self.intake.unusable

    @property
    def resample(self) -> bool:
        """Whether fresh samples have been asked for."""
        return bool(self.triggers)

    @property
    def exit_code(self) -> int:
        """1 where fresh samples have been asked for, otherwise 0."""
        return int(self.resample)

    def update(self, batch: Any, time: Any = None) -> list[WindowVerdict]:
        """Take a batch into account.

        Args:
            batch: whatever `open_source` takes: a frame, an Arrow batch, a dict of arrays, a list of dicts, a path …
                Columns that it lacks, or holds as another kind, count as missing; further ones are passed over.
            time: for windows of time: one time for all rows or one a row, where no column holds it.

        Returns:
            the windows that were completed, in order.

        Raises:
            DataError: the batch cannot be read, or it has no times where windows need them.
        """
        out: list[WindowVerdict] = []
        with self._lock:
            before = self.next
            for part, at in self.intake.batches(batch, time):
                out += self._take(part, at)
            if self.autosave is not None and self.next != before:
                self._save_quietly()
        return out

    def _take(self, batch: pa.RecordBatch, at: Ints | None) -> list[WindowVerdict]:
        self.rows += batch.num_rows
        self.left_over = None
        closed = self.next if self.next is not None else -(1 << 62)
        for pane, rows in self.clock.parts(batch.num_rows, at, closed):
            if isinstance(rows, slice):
                part = batch.slice(rows.start, rows.stop - rows.start)
            else:
                part = batch.take(pa.array(rows))
            if pane not in self.panes:
                self.panes[pane] = self.reference.empty("current")
            self.panes[pane].update(part)
            self.first = pane if self.first is None else min(self.first, pane)
        if self.sequential is not None:
            self.sequential.update(batch)
        while len(self.panes) > self.settings.monitor.max_panes:
            del self.panes[min(self.panes)]
            self.dropped_panes += 1
        return [] if self.collect else self.advance()

    def advance(self) -> list[WindowVerdict]:
        """Judge every window that is complete; `update` does it by itself, unless the monitor only collects."""
        with self._lock:
            return self._advance(self.clock.ready)

    def _advance(self, ready: int) -> list[WindowVerdict]:
        if self.first is None:
            return []
        each = self.length // self.step
        out: list[WindowVerdict] = []
        pane = self.first if self.next is None else self.next
        while pane < ready:
            begin = pane - each + 1
            if begin >= self.first:
                inside = [p for p in range(begin, pane + 1) if p in self.panes]
                if inside or not self._empty:
                    out.append(self._judge(begin, inside))
                self._empty = not inside
            self.panes.pop(begin, None)
            # of a long silence one empty window is told; the rest is passed over in one step
            pane = min(ready, max(pane + 1, min(self.panes, default=ready))) if self._empty else pane + 1
        self.next = pane
        for old in [p for p in self.panes if p <= pane - each]:
            del self.panes[old]
        return out

    def _judge(self, begin: int, inside: list[int]) -> WindowVerdict:
        each = self.length // self.step
        state = self._sum.window(begin, begin + each - 1, self.panes) if inside else None
        verdict = WindowVerdict(
            self.index,
            begin * self.step,
            (begin + each) * self.step,
            self.timed,
            state.rows if state else 0,
            judged=False,
        )
        self.index += 1
        least = self.settings.drift.window_rows
        full: tuple[str, ...] = ()
        if state is None or state.rows < least:
            verdict = replace(verdict, why=f"{verdict.rows} rows; {least} are needed (`drift.window_rows`)")
        else:
            columns = tuple(compare(self.reference, state, self.settings))
            full = self.run.add(columns)
            drifted = tuple(c.name for c in columns if c.verdict == DRIFT)
            verdict = replace(
                verdict, judged=True, columns=columns, drifted=drifted, runs=dict(self.run.lengths), resample=full
            )
            self.effects.append((verdict.index, verdict.effects()))
        alarmed = tuple(self.sequential.crossed()) if self.sequential is not None else ()
        verdict = replace(verdict, sequential=alarmed)
        self.verdicts.append(verdict)
        if full:
            self._trigger(Resample("run", full, self.run.needed, verdict))
        fresh = tuple(name for name in alarmed if name not in self.told)
        if fresh:
            self.told.update(fresh)
            self._trigger(Resample("sequential", fresh, 0, verdict))
        return verdict

    def _trigger(self, event: Resample) -> None:
        self.triggers.append(event)
        if self.webhook is not None:
            self.webhook.send(event.to_dict() | {"reference": self.reference.name})
        if self.on_resample is None:
            return
        try:
            self.on_resample(event)
        except Exception:
            self.callback_errors += 1
            _log.exception("a callback of the drift monitor raised")

    def close(self, timeout: float = 5.0) -> list[WindowVerdict]:
        """The end of the data at hand: judge what is complete without waiting for late rows, and say what is left over.

        A window that was begun and not filled is the last verdict, not judged. It is kept, so the stream may go on, also
        from a saved state. What waits for the webhook is given `timeout` seconds.
        """
        with self._lock:
            ready = self.clock.ready
            if isinstance(self.clock, EventClock) and self.panes:
                ready = max(ready, (self.clock.latest + 1) // self.step)
            out = self._advance(ready)
            rest = [p for p in self.panes if self.next is None or p >= self.next]
            if rest and self.left_over is None:
                begin = max(max(rest) - self.length // self.step + 1, self.first or 0)
                rows = sum(s.rows for p, s in self.panes.items() if p >= begin)
                end = self.clock.latest + 1 if isinstance(self.clock, EventClock) else self.clock.seen
                why = f"the data ended before the window was full; its {rows} rows were not judged"
                self.left_over = WindowVerdict(
                    self.index, begin * self.step, end, self.timed, rows, judged=False, why=why
                )
                out.append(self.left_over)
            if self.autosave is not None:
                self._save_quietly()
        if self.webhook is not None:
            self.webhook.flush(timeout)
        return out

    def report(self) -> Report:
        """The columns that fresh samples were asked for, as findings of the rule `feature-drift`, with every window."""
        from osler.data.drift.monitor_report import report

        with self._lock:
            return report(self)

    def save(self, path: str | Path) -> None:
        """Write the whole state to one Parquet file, replaced as a whole: counts and hashes, no rows.

        Raises:
            DataError: it cannot be written there.
        """
        from osler.data.drift.monitor_store import save

        with self._lock:
            save(self, Path(path))

    def _save_quietly(self) -> None:
        try:
            self.save(self.autosave or "")
        except Exception:
            self.callback_errors += 1
            _log.exception("the state of the drift monitor could not be saved")

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        on_resample: Callback | None = None,
        webhook: str | Webhook | None = None,
        autosave: str | Path | None = None,
    ) -> DriftMonitor:
        """Continue from what `save` wrote, with the settings of then.

        Raises:
            DataError: there is no such file, or it holds no monitor, or is damaged.
        """
        from osler.data.drift.monitor_store import load

        return load(path).attach(on_resample=on_resample, webhook=webhook, autosave=autosave)

    def merge(self, other: DriftMonitor) -> DriftMonitor:
        """Take the panes of another part of the same stream into this monitor.

        Both must watch the same reference over windows of time. Parts are best made with `collect=True`, so that they
        keep all panes; afterwards `advance` or `close` judges. Panes that this monitor has closed already are left out
        and counted as late rows.

        Returns:
            This monitor.

        Raises:
            DataError: windows of rows (the parts have no common order), other windows, another reference, or sequential
                tests (they follow one stream).
        """
        if not isinstance(self.clock, EventClock) or not isinstance(other.clock, EventClock):
            raise DataError(
                "monitors over windows of rows cannot be merged: the rows of two streams have no common order"
            )
        if (self.length, self.step) != (other.length, other.step):
            raise DataError("monitors can only be merged over the same window and every")
        if self.sequential is not None or other.sequential is not None:
            raise DataError("a sequential test follows one stream: switch it off (`monitor.sequential`) to merge")
        with self._lock:
            panes = {p: s.copy() for p, s in self.panes.items()}
            late = 0
            for pane, state in other.panes.items():
                if self.next is not None and pane < self.next:
                    late += state.rows
                elif pane in panes:
                    panes[pane] += state
                else:
                    # added to an empty one, so that other edges are refused
                    panes[pane] = self.reference.empty("current")
                    panes[pane] += state
            self.panes = panes
            self.rows += other.rows
            self.clock.late += other.clock.late + late
            self.clock.ahead += other.clock.ahead
            self.clock.untimed += other.clock.untimed
            self.clock.latest = max(self.clock.latest, other.clock.latest)
            for name, rows in other.unusable.items():
                self.unusable[name] = self.unusable.get(name, 0) + rows
            firsts = [f for f in (self.first, other.first) if f is not None]
            self.first = min(firsts, default=None)
        return self
