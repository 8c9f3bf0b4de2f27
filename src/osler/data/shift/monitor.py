"""Covariate shift watched while a service runs."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from osler.core.report import NotChecked, Report, Series
from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.shift import store, tell
from osler.data.shift.check import Outcome
from osler.data.shift.gate import Gate
from osler.data.shift.intake import plan
from osler.data.shift.reference import Reference, State, WindowShift
from osler.data.shift.rows import open_rows
from osler.data.shift.tiers import Threshold, Tier

Floats = NDArray[np.float64]
_KEPT = 1000  # judged windows that a report draws
_log = logging.getLogger("osler.shift")


class ShiftEvent(NamedTuple):
    """What a callback is told.

    Attributes:
        tier: the tier that was reached.
        shift: the statistics of the window.
        kl, mmd: the thresholds it was judged by.
        rows: whole rows seen so far.
    """

    tier: Tier
    shift: WindowShift
    kl: Threshold
    mmd: Threshold
    rows: int


Callback = Callable[[ShiftEvent], object]


class ShiftMonitor:
    """Judges the last `window` rows against a reference, again and again, and closes a gate when they are too far off.

    Rows are kept as sums in panes of `every` rows, never as rows; a window is the last `window / every` full panes, and it
    is judged whenever a pane is full. The statistics are the Gaussian KL and MMD by random Fourier features, with the
    tiers and the calibration of `check_shift`. `settings.shift.level` is the false-alarm rate of one judgement. Windows
    that overlap are not independent: at ten judgements a window the chance of an alarm somewhere within a window's length
    is a few times the level, not ten times it (`monitor` in benchmarks/shift.py measures it).

    - Silent → alert: `on_alert` is called. It is called again only after the shift has been silent in between.
    - Any → freeze: the gate closes, and `on_freeze` is called once. The gate stays closed until `reset`, also when later
      windows look better: a model that has been taken out comes back by decision.

    Callbacks run in the thread that called `update`. What they raise is logged (logger `osler.shift`) and counted in
    `callback_errors`; it never reaches the service. `update` may be called from several threads.

    Attributes:
        gate: ask `monitor.gate.open` before relying on the model.
        tier: of the last window judged.
        rows: whole rows seen. skipped: rows with a missing or non-finite value, which take no part.
        callback_errors: callbacks that raised.
    """

    def __init__(
        self,
        reference: Any,
        *,
        window: int | None = None,
        every: int | None = None,
        columns: Sequence[str] | None = None,
        settings: Settings | None = None,
        on_alert: Callback | None = None,
        on_freeze: Callback | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Fit to a reference.

        Args:
            reference: an array of shape [n, d], or a table by its numeric columns; whatever `check_shift` takes.
            window: rows in a window; None: `settings.shift.window`.
            every: new rows after which a window is judged; it divides `window`. None: `settings.shift.every`, or the
                whole window where that does not divide it.
            columns: features that take part; None takes all that can.
            settings: the whole tree.
            on_alert, on_freeze: called with a `ShiftEvent`.
            gate: an existing gate to close; None makes one.

        Raises:
            DataError: unreadable or too small a reference (two windows are needed), `every` that does not divide `window`.
        """
        chosen = (settings or Settings()).shift
        rows = open_rows(reference, columns, "reference")
        what = plan(rows, rows, chosen)
        size = window or chosen.window
        if not what.names:
            raise DataError(f"{rows.name} has no feature to watch: all are constant, missing or identifiers")
        if len(what.rows) < 2 * size:
            raise DataError(f"{rows.name} has {len(what.rows)} whole rows; windows of {size} need at least {2 * size}")
        fitted = Reference.fit(what.rows, what.names, chosen, window=size)
        width = len(rows.names) if rows.is_matrix and columns is None else None
        left_out = [*what.left_out, *((name, "is constant in the reference") for name in what.constants)]
        self._start(fitted, every, width, on_alert, on_freeze, gate, left_out)

    def _start(
        self,
        reference: Reference,
        every: int | None,
        width: int | None,
        on_alert: Callback | None,
        on_freeze: Callback | None,
        gate: Gate | None,
        left_out: list[tuple[str, str]],
    ) -> None:
        window = reference.window
        if every is None:
            every = reference.settings.every if window % reference.settings.every == 0 else window
        if not 1 <= every <= window or window % every:
            raise DataError(f"every={every} does not divide the window of {window} rows")
        self.reference = reference
        self.gate = gate if gate is not None else Gate()
        self.on_alert, self.on_freeze = on_alert, on_freeze
        self.tier = Tier.SILENT
        self.rows = self.skipped = self.callback_errors = 0
        self.left_out = left_out
        self._every = every
        self._width = width
        self._positions = [int(name) for name in reference.names] if width is not None else []
        self._thresholds = reference.thresholds()
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._panes: deque[State] = deque(maxlen=self.reference.window // self._every)
        self._open = self.reference.empty()
        self._history: deque[tuple[int, WindowShift]] = deque(maxlen=_KEPT)
        self._state: State | None = None

    @property
    def window(self) -> int:
        """Rows in a window."""
        return self.reference.window

    def update(self, batch: Any) -> Tier:
        """Take rows into account: an array of shape [n, d] or [d], or a table with the reference's columns.

        Returns:
            the tier of the last window judged (silent until the first window is full).

        Raises:
            DataError: another number of features than the reference's, a missing column, no real numbers.
        """
        rows = self._rows(batch)
        whole = np.isfinite(rows).all(axis=1)
        kept = rows if whole.all() else rows[whole]
        with self._lock:
            self.skipped += len(rows) - len(kept)
            start = 0
            while start < len(kept):
                take = min(self._every - self._open.moments.size, len(kept) - start)
                self._open = self._open.plus(self.reference.of(kept[start : start + take]))
                start += take
                self.rows += take
                if self._open.moments.size == self._every:
                    self._panes.append(self._open)
                    self._open = self.reference.empty()
                    if len(self._panes) == self._panes.maxlen:
                        self._judge()
            return self.tier

    def _rows(self, batch: Any) -> Floats:
        if self._width is None:
            parts = list(open_rows(batch, self.reference.names, "batch").batches())
            return np.concatenate(parts) if parts else np.empty((0, len(self.reference.names)))
        if isinstance(batch, np.ndarray) and batch.ndim == 1:
            batch = batch[:, None] if self._width == 1 else batch[None, :]
        rows = open_rows(batch, None, "batch")
        if len(rows.names) != self._width:
            raise DataError(f"the batch has {len(rows.names)} features and the reference has {self._width}")
        parts = [part[:, self._positions] for part in rows.batches()]
        return np.concatenate(parts) if parts else np.empty((0, len(self._positions)))

    def _judge(self) -> None:
        state = self._panes[0]
        for pane in list(self._panes)[1:]:
            state = state.plus(pane)
        shift = self.reference.judge(state, self._thresholds)
        before, self.tier, self._state = self.tier, shift.tier, state
        self._history.append((self.rows, shift))
        event = ShiftEvent(shift.tier, shift, *self._thresholds, self.rows)
        if shift.tier is Tier.FREEZE:
            kl, mmd = self._thresholds
            reason = f"covariate shift after {self.rows} rows: KL {shift.kl:.3g} (freeze from {kl.freeze:.3g}), "
            if self.gate.close(reason + f"MMD {shift.mmd:.3g} (freeze from {mmd.freeze:.3g})"):
                self._tell(self.on_freeze, event)
        elif shift.tier is Tier.ALERT and before is Tier.SILENT:
            self._tell(self.on_alert, event)

    def _tell(self, callback: Callback | None, event: ShiftEvent) -> None:
        if callback is None:
            return
        try:
            callback(event)
        except Exception:
            self.callback_errors += 1
            _log.exception("a callback of the shift monitor raised")

    def reset(self) -> None:
        """Forget the rows seen and open the gate, e.g. when a newly trained model is in place."""
        with self._lock:
            self._clear()
            self.tier = Tier.SILENT
            self.gate.reopen()

    def report(self) -> Report:
        """The last window as a finding where it is above silent, with curves over the windows judged."""
        with self._lock:
            names = self.reference.names
            subject: dict[str, object] = {"kind": "check", "check": "shift", "rows": self.rows, "features": len(names)}
            report = Report(subject=subject)
            report.not_checked += [NotChecked(f"column {n}", why, is_rule=False) for n, why in self.left_out]
            if self.skipped:
                report.notes.append(f"{self.skipped} rows lack a value (missing, NaN or Inf) and were left out")
            if not self._history or self._state is None:
                why = f"{self.rows} rows so far; a window takes {self.window}"
                report.not_checked.append(NotChecked("covariate-shift", why))
                return report
            last = self._history[-1][1]
            outcome = Outcome(self.reference, windows=[last], thresholds=self._thresholds, recent=self._state)
            tell.statistics(report, outcome)
            if last.tier > Tier.SILENT:
                report.findings.append(tell.finding(outcome, self.rows))
            steps = [rows for rows, _ in self._history]
            report.series.append(Series("kl", "curve", steps, [w.kl for _, w in self._history], unit="nats"))
            report.series.append(Series("mmd", "curve", steps, [w.mmd for _, w in self._history]))
            return report

    def save(self, path: str | Path) -> None:
        """Write the reference (`.npz`, no pickle, no rows), the counts and whether the gate is closed.

        The current window is not written: after `load` it fills anew.
        """
        with self._lock:
            extra = {
                "every": self._every,
                "width": self._width,
                "rows": self.rows,
                "skipped": self.skipped,
                "left_out": self.left_out,
                "frozen": None if self.gate.open else self.gate.reason,
            }
            store.save(self.reference, path, extra)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        on_alert: Callback | None = None,
        on_freeze: Callback | None = None,
        gate: Gate | None = None,
    ) -> ShiftMonitor:
        """A monitor from what `save` wrote. A gate that was closed is closed again.

        Raises:
            DataError: the file is missing, is no such file, or is damaged.
        """
        reference, extra = store.load(path)
        out = cls.__new__(cls)
        try:
            width = extra["width"] if extra["width"] is None else int(extra["width"])
            left_out = [(str(name), str(why)) for name, why in extra["left_out"]]
            out._start(reference, int(extra["every"]), width, on_alert, on_freeze, gate, left_out)
            out.rows, out.skipped = int(extra["rows"]), int(extra["skipped"])
            if extra["frozen"] is not None:
                out.gate.close(str(extra["frozen"]))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is no monitor that osler saved, or is damaged: fit it again") from None
        return out
