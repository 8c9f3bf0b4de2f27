"""One watched process: installs the probes and the monitors, and takes them off again."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from osler.core.finding import Finding
from osler.core.settings import Settings
from osler.core.sink import Sink
from osler.training import activations
from osler.training.environment import facts
from osler.training.layers import LayerProbe
from osler.training.monitors.detached import DetachedMonitor
from osler.training.monitors.magnitudes import MagnitudeMonitor
from osler.training.monitors.ownership import OwnershipMonitor
from osler.training.monitors.units import UnitMonitor
from osler.training.optimizers import OptimizerWatch
from osler.training.probes import backward, compiled, optimizers, scalers, surroundings, warnings
from osler.training.recorder import Recorder, Trip
from osler.training.trace import Trace

if TYPE_CHECKING:
    from osler.training.monitors.numbers import NumberMonitor

_PROBES = (backward.attach, optimizers.attach, scalers.attach, compiled.attach, surroundings.attach, warnings.attach)
_NEEDED = (backward.attach, optimizers.attach)
_active: list[Session] = []


def active() -> bool:
    """Whether a session is at work in this process."""
    return bool(_active)


class Session:
    """Probes, recorder and monitors of this process."""

    def __init__(self, sink: Sink, settings: Settings, options: Mapping[str, Any]) -> None:
        """`options` are those of the plan (docs/design.md).

        Raises:
            RuntimeError: another session is at work in this process.
        """
        if _active:
            raise RuntimeError("osler is already watching this process")
        self.sink = sink
        self.settings = settings
        self.options = dict(options)
        self._undo: list[Callable[[], None]] = []
        self._pid = os.getpid()
        self._closed = False
        self._build()

    def _build(self) -> None:
        self.recorder = Recorder(self.sink, self.settings, self.options)
        self.numbers: NumberMonitor | None = None
        self.magnitudes = MagnitudeMonitor(self.recorder)
        self.units = UnitMonitor(self.recorder)
        self.ownership = OwnershipMonitor(self.recorder)
        self.detached = DetachedMonitor(self.recorder)
        self.layers = LayerProbe(self.recorder)
        self.recorder.on_trip = self._on_trip
        self.recorder.on_step = self._on_step
        self.recorder.on_trace = self._on_trace
        self.recorder.on_cut = self.detached.nothing_left

    def _on_trip(self, trip: Trip) -> list[Finding]:
        grown = list(self.magnitudes.exploding(trip.watch)) if trip.watch is not None else []
        if self.numbers is None:
            # brings the whole replay along, which a healthy training never needs
            from osler.training.monitors.numbers import NumberMonitor

            self.numbers = NumberMonitor(self.recorder)
        return [*grown, *self.numbers.trip(trip)]

    def _on_step(self, watch: OptimizerWatch) -> list[Finding]:
        return [*self.ownership.step(watch), *self.magnitudes.step(watch), *self.detached.step(watch)]

    def _on_trace(self, trace: Trace, watch: OptimizerWatch | None) -> list[Finding]:
        return [
            *self.ownership.trace(trace, watch),
            *self.units.trace(trace, watch),
            *self.magnitudes.trace(trace, watch),
            *self.detached.trace(trace, watch),
            *self.layers.trace(trace),
        ]

    def install(self) -> Session:
        """Attach everything; the session closes itself when the process ends.

        Raises:
            RuntimeError: another session is at work in this process.
        """
        if _active:
            raise RuntimeError("osler is already watching this process")
        activations.MARGIN = self.settings.gradients.saturation_margin
        for attach in _PROBES:
            try:
                self._undo.append(attach(self.recorder))
            except Exception as error:
                if attach in _NEEDED:
                    self.remove()
                    raise
                # another torch than those it was written for: the rest still watches
                what = f"what {attach.__module__.rpartition('.')[2]} tell"
                self.sink.not_checked(what, f"torch {torch.__version__}: {type(error).__name__}: {error}")
        self.recorder.root_hook.install()
        self._undo.append(self.recorder.root_hook.remove)
        _active.append(self)
        atexit.register(self.close)
        _forget_in_children(self)
        self.sink.awake(torch.__version__)
        self.sink.environment(facts())
        return self

    def remove(self) -> None:
        """Take everything off again."""
        self.recorder.looks.close()
        self.recorder.mode.close()
        while self._undo:
            self._undo.pop()()
        if self in _active:
            _active.remove(self)
        atexit.unregister(self.close)

    def close(self) -> None:
        """Judge what is left, say what could not be judged, write everything out."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        r = self.recorder
        if not r.dead and r.step == 0 and not r.trips:
            self._never_trained()
        elif not r.dead:
            r.guarded("judging what is left", self._last_judgement)
            self._say_what_was_not_checked()
        r.close()
        self.sink.close(r.step)
        self.remove()

    def _never_trained(self) -> None:
        r = self.recorder
        r.guarded("looking at what the script died of", self._open_tape)

    def _last_judgement(self) -> None:
        r = self.recorder
        self._open_tape()
        for watch in r.optimizers.values():
            r.ledger.emit([*self.ownership.end(watch), *self.magnitudes.end(watch), *self.detached.step(watch)])

    def _open_tape(self) -> None:
        """A script that checks its loss and gives up before `backward` leaves the evidence on the open tape."""
        r = self.recorder
        r.mode.pop()
        for entry in reversed(r.tape.entries):
            for ref in entry.outputs:
                value = ref()
                if value is not None and value.numel() == 1 and value.is_floating_point():
                    if not bool(torch.isfinite(value)):
                        r.last_loss = value.item()
                        r.tape.close([value], None, entry.line, keep=False, scaled=False)
                        watch = next(iter(r.optimizers.values()), None)
                        r.trip("loss, never differentiated", watch)
                    return

    def _say_what_was_not_checked(self) -> None:
        r, g = self.recorder, self.recorder.governor
        say = self.sink.not_checked
        if g.steps and g.taped_steps < g.steps:
            share = g.taped_steps / g.steps
            say(
                "the exact line of a non-finite number",
                f"the operations of {share:.0%} of the steps were recorded, to keep to the overhead budget; "
                "--budget none records all",
            )
        if r.tape.let_go:
            say(
                "replay of long accumulations",
                f"{r.tape.let_go} backward passes were let go: numbers.max_segments is {self.settings.numbers.max_segments}",
            )
        if r.looks.failures:
            say("close looks", f"{len(r.looks.failures)} looks at activations failed, first {r.looks.failures[0]}")
        for monitor in (self.magnitudes, self.units, self.ownership, self.detached):
            for rule, why in monitor.not_checked():
                say(rule, why)
        if not r.optimizers and r.step == 0:
            say("everything that needs an optimizer step", "no optimizer of torch.optim was stepped")

    def after_fork(self) -> None:
        """In a forked child: start afresh, with nothing of the parent's."""
        self._pid = os.getpid()
        self._closed = False
        again = getattr(self.sink, "after_fork", None)
        if again is not None:
            again()
        old = self.recorder
        old.mode.pop()
        old.looks.stop()
        fresh = Recorder(self.sink, self.settings, {**self.options, "expect": None, "record_graph": None})
        # The probes hold the recorder itself: it is renewed in place.
        keep = ("root_hook", "mode", "looks", "on_trip", "on_step", "on_trace", "on_cut", "tape")
        for key, value in vars(fresh).items():
            if key not in keep:
                setattr(old, key, value)
        old.tape.clear()


def _forget_in_children(session: Session) -> None:
    if not hasattr(os, "register_at_fork"):
        return
    alive = weakref.ref(session)

    def child() -> None:
        found = alive()
        if found is not None and found in _active:
            try:
                found.after_fork()
            except Exception:
                found.recorder.dead = True

    os.register_at_fork(after_in_child=child)
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None:
        # Children of multiprocessing leave through os._exit and run its finalizers, not atexit's; it forgets those of
        # before the fork and then calls this.
        util.register_after_fork(session, _close_with_multiprocessing)


def _close_with_multiprocessing(session: Session) -> None:
    util: Any = sys.modules["multiprocessing.util"]
    if session in _active:
        util.Finalize(None, session.close, exitpriority=100)
