"""Events in, findings out: the one place where the probes meet.

Detection is one reduction over the gradients in the optimizer's pre-hook, before the bad update is applied. When it trips,
the held segments are replayed. Everything here runs on the training's hot path unless said otherwise.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from osler.core.finding import Finding
from osler.core.frames import Line, line_of, user_frame, user_line
from osler.core.settings import Settings
from osler.core.sink import Sink
from osler.training import private
from osler.training.governor import Governor
from osler.training.histograms import NO_GRADIENT
from osler.training.ledger import Ledger
from osler.training.looks import Looks, has_fast_path
from osler.training.naming import Names
from osler.training.optimizers import OptimizerWatch, StepRecord, gradient_norms, really_bad
from osler.training.series import SeriesWriter
from osler.training.tape import Entry, Segment, Tape, TapeMode, autocast_now, rng_now, tensors_in, versions_of
from osler.training.trace import Trace

_now = time.perf_counter_ns
_BATCH = 8  # steps without a tape that are accounted for at once
# What no clock inside the hooks sees (calls into them, caches gone cold), per step, in calls of a warm module hook. An
# estimate: benchmarks/overhead.py prints osler's own account beside the ratio measured from outside.
_HIDDEN = 14.0
_EVERY = 16  # steps between two judgements of the windows; four times as many after the first 128


@dataclass(frozen=True, slots=True)
class Trip:
    """A number that went bad, with what is needed to look into it.

    Attributes:
        kind: what gave it away.
        step: the step in which it did.
        watch: the optimizer whose step it is, None where there is none.
        segments: what was held since the last step.
    """

    kind: str
    step: int
    watch: OptimizerWatch | None
    segments: list[Segment]


class Recorder:
    """Everything that is known of the training under way."""

    def __init__(self, sink: Sink, settings: Settings, options: dict[str, Any]) -> None:
        self.sink = sink
        self.settings = settings
        self.options = options
        self.names = Names()
        self.ledger = Ledger(sink, settings)
        self.optimizers: dict[int, OptimizerWatch] = {}
        self.tape = Tape(settings.numbers.max_tape, settings.numbers.max_segments)
        self.governor = Governor(settings.budget, bool(options.get("budget_none")), settings.gradients.sample_every)
        self.series = SeriesWriter(sink, self.names)
        self.looks = Looks(self.names, any(options.get(k) for k in ("trace_layers", "expect", "record_graph")))
        self.mode = private.BottomMode(
            TapeMode(self.tape, lambda: not self.mode.on or self.closed() or private.is_tracing())
        )
        self.root_hook = private.RootHook(self._enter, self._leave)
        self.tape.failed = lambda error: self.stand_down("recording an operation", error)
        self.thread = threading.get_ident()
        # what the session connects
        self.on_trip: Callable[[Trip], list[Finding]] = lambda trip: []
        self.on_step: Callable[[OptimizerWatch], list[Finding]] = lambda watch: []
        self.on_trace: Callable[[Trace, OptimizerWatch | None], list[Finding]] = lambda trace, watch: []
        self.on_cut: Callable[[Trace | None, Line | None], list[Finding]] = lambda trace, line: []
        # surroundings
        self.born: dict[int, tuple[weakref.ref[Any], Line | None]] = {}
        self.loaded_at: dict[int, int] = {}
        self.batch: int | None = None
        self.epoch: int | None = None
        self.step = 0
        self.trips = 0
        # where the training is
        self.dead = False
        self.replaying = False
        self.in_root = False
        self.in_backward = False
        self.in_step = 0
        self.in_scaler = 0
        self.scaling = False
        self.skips = 0
        self.last_loss: float | None = None
        self.unscaled_loss: torch.Tensor | None = None
        self.last_line: Line | None = None
        self._loss_tensor: torch.Tensor | None = None
        self._loss_told = False
        self._latest: OptimizerWatch | None = None
        self._root: tuple[Any, bool, Line | None, int] = (None, True, None, 0)
        # nanoseconds since the last step
        self._always = 0
        self._taping = 0
        self._last_step_end = _now()
        try:
            self._call_cost, self._root_cost = _costs()
        except Exception:
            # about what a two-core virtual machine gives
            self._call_cost, self._root_cost = 5000.0, 2000.0
        self._recorded = 0
        self._roots = 0
        self._unaccounted = 0
        self._replayed = 0

    # --- state

    def closed(self) -> bool:
        """Whether nothing is to be recorded at this moment."""
        return self.dead or self.replaying or self.in_backward or self.in_root or self.in_scaler > 0

    def elsewhere(self) -> bool:
        """Whether this is not the thread that is watched."""
        return threading.get_ident() != self.thread

    def guarded(self, what: str, fn: Callable[[], None]) -> None:
        """Run osler's own slow work; if it fails, say so once and step aside."""
        try:
            fn()
        except Exception as error:
            self.stand_down(what, error)

    def stand_down(self, what: str, error: BaseException) -> None:
        """osler itself failed: one line, and the training goes on unwatched."""
        if self.dead:
            return
        self.dead = True
        text = str(error).splitlines()[0] if str(error) else ""
        if os.environ.get("OSLER_DEBUG"):
            import traceback

            traceback.print_exc()
        self.sink.note(f"osler failed while {what} ({type(error).__name__}: {text}); the training goes on unwatched")
        self.sink.not_checked(
            "everything after the failure", f"osler failed while {what}: {type(error).__name__}: {text}"
        )
        self.mode.pop()
        self.looks.stop()
        self.tape.clear()
        self.tape.entries.clear()

    # --- root modules

    def _enter(self, module: torch.nn.Module, args: Any) -> bool:
        try:
            return self.enter_root(module, args)
        except Exception as error:
            self.in_root = False
            self.stand_down("entering a module", error)
            return False

    def _leave(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        try:
            self.leave_root(module, args, kwargs, output)
        except Exception as error:
            self.stand_down("leaving a module", error)

    def enter_root(self, module: torch.nn.Module, args: Any) -> bool:
        """A module is called from outside any module; returns whether its end is of interest."""
        began = _now()
        if self.closed() or threading.get_ident() != self.thread or private.busy_elsewhere():
            return False
        grad = torch.is_grad_enabled()
        look = self.governor.look_on
        if not grad and not (look and module.training):
            return False
        self.in_root = True
        self.mode.pop()
        self._roots += 1
        if self.names.know(module):
            self.series.rename()
        rng = line = None
        if grad:
            self.tape.sweep()
            rng = rng_now()
            line = line_of(user_frame(sys._getframe(1)))
        self._taping += _now() - began
        if look and not has_fast_path(module):
            self.looks.begin(module, args, self.step)
        self._root = (rng, module.training, line, _now())
        return True

    def leave_root(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """The root module's forward has ended (output is None when it raised)."""
        if not self.in_root:
            return
        began = _now()
        self.in_root = False
        rng, training, line, entered = self._root
        if self.looks.tracer is not None:
            self.looks.spent += began - entered
        if self.dead or self.replaying or not torch.is_grad_enabled():
            return
        if output is not None and self.governor.tape_on:
            outputs = [weakref.ref(t) for t in tensors_in(output)]
            entry = Entry(
                module, args, kwargs, outputs, line, rng, versions_of(args), True, training, autocast_now()
            )  # fmt: skip
            self.tape.add(entry)
            if not self.in_backward:
                self.mode.push()
        self._taping += _now() - began

    def opaque_call(self, fn: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Call a compiled callable as one opaque root: neither modes nor hooks of osler may be seen by the compiler."""
        if self.dead or self.replaying or self.elsewhere() or torch.compiler.is_compiling():
            return fn(*args, **kwargs)
        was_root, taped, lifted = self.in_root, self.mode.on, self.root_hook.lift()
        self.mode.pop()
        traced = self.looks.pause()
        record = not was_root and not self.in_backward and torch.is_grad_enabled() and self.governor.tape_on
        rng = rng_now() if record else None
        line = user_line() if record or traced else None
        self.in_root = True
        try:
            output = fn(*args, **kwargs)
        finally:
            self.in_root = was_root
            if lifted:
                self.root_hook.restore()
            if traced:
                self.looks.resume(was_root)
            if taped:
                self.mode.push()
        if record or traced:
            self.guarded(
                "recording a compiled call",
                lambda: self._keep_opaque(original, args, kwargs, output, line, rng, record),
            )
        return output

    def _keep_opaque(
        self, original: Any, args: Any, kwargs: Any, output: Any, line: Line | None, rng: Any, record: bool
    ) -> None:
        module = original if isinstance(original, torch.nn.Module) else None
        name = type(module).__name__ if module is not None else getattr(original, "__name__", "a function")
        self.looks.opaque(name, line, module, args, output)
        if record:
            if module is not None and self.names.know(module):
                self.series.rename()
            outputs = [weakref.ref(t) for t in tensors_in(output)]
            training = module.training if module is not None else True
            entry = Entry(
                original, args, kwargs, outputs, line, rng, versions_of(args), module is not None, training, autocast_now()
            )  # fmt: skip
            self.tape.add(entry)
            self.mode.push()

    # --- backward

    def begin_backward(self, tensors: Any, grad_tensors: Any, keep: bool) -> None:
        """`backward` is entered with these tensors; `keep`: the graph will be used again."""
        began = _now()
        self.mode.pop()
        root = tensors if isinstance(tensors, torch.Tensor) else tensors[0] if tensors else None
        self.last_loss = self._loss_tensor = None
        if root is not None and grad_tensors is None and root.numel() == 1:
            if root.is_cpu:
                self.last_loss = root.item()
            else:
                self._loss_tensor = root.detach()
        if self.looks.tracer is not None:
            with private.unseen():
                self.looks.to_backward(_listed(tensors))
        now = _now()
        self._always += now - began
        if self.tape.entries:
            self.last_line = line_of(user_frame(sys._getframe(1)))
            self.tape.close(_listed(tensors), grad_tensors, self.last_line, keep=keep, scaled=self.scaling)
            self._taping += _now() - now

    def end_backward(self) -> None:
        """`backward` has returned."""
        if self.scaling:
            return
        if not self.optimizers and not any(ref() is not None for ref, _ in self.born.values()):
            # updates by hand: nothing else will tell that the step is over
            if self.last_loss is not None and not math.isfinite(self.last_loss):
                self._loss_told = True
                self.guarded("replaying the step", lambda: self.trip("loss", None))
            self.tape.clear()
        elif self.in_step:
            # an optimizer that takes a closure: what the step will do with the gradients is not seen from outside
            watch = next((w for w in self.optimizers.values() if w.closure), None)
            if watch is not None:
                self._check(watch)
                self.tape.clear()

    def refused_backward(self, error: BaseException) -> None:
        """`backward` has raised."""
        text = str(error)
        if isinstance(error, RuntimeError) and "does not require grad" in text:
            trace = self.looks.pending or self.looks.stop()
            line = self.last_line or user_line(3)
            self.guarded("explaining why the loss has no graph", lambda: self.ledger.emit(self.on_cut(trace, line)))
        elif isinstance(error, RuntimeError) and "nan values" in text:
            self.guarded("replaying the step", lambda: self.trip("anomaly mode", None))

    # --- optimizer steps

    def watch_of(self, optimizer: torch.optim.Optimizer) -> OptimizerWatch:
        """What is known of an optimizer."""
        watch = self._latest
        if watch is not None and watch.ref() is optimizer:
            return watch
        watch = self.optimizers.get(id(optimizer))
        if watch is None or watch.ref() is not optimizer:
            born = self.born.get(id(optimizer))
            line = born[1] if born is not None and born[0]() is optimizer else None
            watch = OptimizerWatch(optimizer, len(self.optimizers), self.settings.gradients.window, line)
            self.optimizers[id(optimizer)] = watch
        self._latest = watch
        return watch

    def before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """The optimizer is about to apply the gradients."""
        began = _now()
        self._replayed = 0
        self.in_step += 1
        self.mode.pop()
        watch = self.watch_of(optimizer)
        watch.refresh(optimizer)
        watch.closure = (len(args) > 1 and args[1] is not None) or kwargs.get("closure") is not None
        if watch.line is None or self.governor.look_on:
            self.looks.purge()
            watch.line = line_of(user_frame(sys._getframe(1)))
            with private.unseen():
                self.looks.before_update(watch)
        if not watch.closure and not self.in_scaler:
            self._check(watch, optimizer)
        self._always += _now() - began - self._replayed
        self._replayed = 0

    def _check(self, watch: OptimizerWatch, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Look at the gradients: the one thing that is never left out."""
        if private.modes_active():
            with private.unseen():
                row = gradient_norms(watch.parameters)
        else:
            row = gradient_norms(watch.parameters)
        if self._loss_tensor is not None:
            self.last_loss, self._loss_tensor = self._loss_tensor.item(), None
        loss = self.last_loss
        total = 0.0
        for n in row:
            if n != NO_GRADIENT:
                total += n * n
        optimizer = optimizer or watch.ref()
        record = StepRecord(watch.steps, watch.lr(optimizer), math.sqrt(total), loss)
        watch.keep(record, row)
        # x - x is 0 for every finite x
        if total - total == 0.0 and (loss is None or loss - loss == 0.0):
            return
        if self._loss_told:
            self._loss_told = False
            return
        if (loss is not None and loss - loss != 0.0) or really_bad(watch.parameters):
            self.guarded("replaying the step", lambda: self.trip("gradients", watch))

    def after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """The optimizer has applied the gradients."""
        began = _now()
        if self.in_step:
            self.in_step -= 1
        watch = self.watch_of(optimizer)
        watch.stepped()
        if not self.in_scaler:
            self.step_done(watch, began)

    def step_done(self, watch: OptimizerWatch, began: int) -> None:
        """A step, applied or skipped, is over."""
        tape, governor = self.tape, self.governor
        if not self.scaling and (tape.segments or tape.entries):
            tape.clear()
        if self.looks.pending is not None:
            with private.unseen():
                self.looks.after_update(watch)
                self._judge_look(watch)
            began = _now()
        self._loss_told = False
        watch.steps += 1
        if watch.steps > self.step:
            self.step = watch.steps
        if watch.steps % _EVERY == 0 and (watch.steps <= 8 * _EVERY or watch.steps % (4 * _EVERY) == 0):
            self._judge_window(watch)
        self._unaccounted += 1
        now = _now()
        self._always += now - began
        if governor.tape_on or governor.look_on or self._unaccounted == _BATCH or governor.due(self._unaccounted):
            calls, roots = tape.recorded - self._recorded, self._roots
            self._recorded, self._roots = tape.recorded, 0
            governor.steps_done(
                self._unaccounted,
                now - self._last_step_end,
                self._always + self._unaccounted * _HIDDEN * self._root_cost,
                self._taping + calls * self._call_cost + roots * self._root_cost,
                self.looks.spent,
            )
            self._always = self._taping = self.looks.spent = self._unaccounted = 0
            self._last_step_end = now
            self._arm()

    def _judge_window(self, watch: OptimizerWatch) -> None:
        self.guarded("judging the gradients", lambda: self.ledger.emit(self.on_step(watch)))
        self.series.take(watch)
        if watch.steps in (_EVERY, 4 * _EVERY) or watch.steps % (16 * _EVERY) == 0:
            self.sink.overhead(self.governor.figures())

    def _arm(self) -> None:
        """Make ready for the next step what the governor allows."""
        if self.dead:
            return
        if self.governor.tape_on or self.governor.look_on:
            self.root_hook.restore()
            if self.governor.whole:
                self.mode.push()
        else:
            # without the global hook every module keeps torch's fast path
            self.root_hook.lift()

    def _judge_look(self, watch: OptimizerWatch) -> None:
        began = _now()
        trace = self.looks.take()
        if trace is not None:
            self.guarded("judging a close look", lambda: self.ledger.emit(self.on_trace(trace, watch)))
        self.looks.spent += _now() - began

    # --- GradScaler

    def scaler_done(self, optimizer: torch.optim.Optimizer) -> None:
        """GradScaler.step has returned, whether or not it called the optimizer."""
        began = _now()
        watch = self.watch_of(optimizer)
        watch.refresh(optimizer)
        row = gradient_norms(watch.parameters)
        total = math.sqrt(sum(n * n for n in row if n != NO_GRADIENT))
        # the row of a skipped step says nothing about the model
        watch.keep(
            StepRecord(watch.steps, watch.lr(optimizer), total, self.last_loss), row, window=math.isfinite(total)
        )
        self.step_done(watch, began)

    def scaler_update(self, found_inf: bool) -> None:
        """GradScaler.update is about to change the scale in place."""
        self.skips = self.skips + 1 if found_inf else 0
        watch = next(reversed(self.optimizers.values()), None)
        loss = float(self.unscaled_loss) if self.unscaled_loss is not None else self.last_loss
        if loss is not None and not math.isfinite(loss):
            self.guarded("replaying the step", lambda: self.trip("scaled loss", watch, done=True))
        elif self.skips >= self.settings.numbers.scaler_skips:
            self.skips = 0
            self.guarded("replaying the step", lambda: self.trip("scaled gradients", watch, done=True))
        self.tape.clear()
        self.unscaled_loss = None

    # --- trips

    def trip(self, kind: str, watch: OptimizerWatch | None, done: bool = False) -> None:
        """A number has gone bad: replay what is held and say what was found. Not on the hot path.

        Args:
            kind: what gave it away.
            watch: the optimizer whose step it is.
            done: the step has been counted already (a scaler's update comes after it).
        """
        if self.replaying:
            return
        step = max(0, watch.steps - done) if watch is not None else self.step
        self.trips += 1
        most = self.settings.numbers.max_replays
        if self.trips > most and (self.ledger.repeat("nonfinite-parameter", step) or self.trips > 4 * most):
            return
        began = _now()
        self.replaying = True
        self.mode.pop()
        lifted = self.root_hook.lift()
        try:
            self.ledger.emit(self.on_trip(Trip(kind, step, watch, list(self.tape.segments))))
        finally:
            self.replaying = False
            if lifted:
                self.root_hook.restore()
            self.governor.tripped()
            # The replay is no step's overhead; its time is in the finding.
            self._replayed = _now() - began
            self._last_step_end += self._replayed

    def close(self) -> None:
        """The process or the watch ends."""
        self.ledger.close()
        for watch in self.optimizers.values():
            self.series.take(watch)
        self.series.flush()
        self.sink.overhead(self.governor.figures())


def _listed(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _costs() -> tuple[float, float]:
    """Nanoseconds that the tape adds to one torch function call, and the root hook to one module call, beyond what the
    recorder can time from within. Measured on this machine when a session begins, in about 2 ms."""
    tape = Tape(1 << 30, 1)
    mode = TapeMode(tape, lambda: False)
    x = torch.zeros(1, requires_grad=True)
    module = torch.nn.Identity()

    def time_of(fn: Callable[[], Any]) -> float:
        best = math.inf
        for _ in range(3):
            began = _now()
            for _ in range(32):
                fn()
            best = min(best, (_now() - began) / 32)
        return best

    with torch.enable_grad():
        bare = time_of(lambda: torch.neg(x))
        with mode:
            taped = time_of(lambda: torch.neg(x))
        plain = time_of(lambda: module(x))
        hook = private.RootHook(lambda m, a: True, lambda m, a, k, o: None)
        hook.install()
        try:
            hooked = time_of(lambda: module(x))
        finally:
            hook.remove()
    return max(0.0, taped - bare), max(0.0, hooked - plain)
