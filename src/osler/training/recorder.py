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
from collections.abc import Callable, Sequence
from typing import Any

import torch

from osler.core.finding import Finding
from osler.core.settings import Settings
from osler.core.sink import Sink
from osler.training import private
from osler.training.frames import Line, line_of, user_frame, user_line
from osler.training.governor import Governor
from osler.training.naming import Names
from osler.training.optimizers import NO_GRADIENT, OptimizerWatch, StepRecord, gradient_norms, really_bad
from osler.training.series import SeriesWriter
from osler.training.tape import Entry, Segment, Tape, TapeMode, autocast_now, rng_now, tensors_in, versions_of
from osler.training.trace import Trace, Tracer

_now = time.perf_counter_ns


class Recorder:
    """Everything that is known of the training under way."""

    def __init__(self, sink: Sink, settings: Settings, options: dict[str, Any]) -> None:
        self.sink = sink
        self.settings = settings
        self.options = options
        self.names = Names()
        self.optimizers: dict[int, OptimizerWatch] = {}
        self.tape = Tape(settings.numbers.max_tape, settings.numbers.max_segments)
        self.governor = Governor(settings.budget, bool(options.get("budget_none")), settings.gradients.sample_every)
        self.series = SeriesWriter(sink)
        self.step = 0
        self.seen: dict[str, Finding] = {}
        self.on_trip: Callable[[Trip], list[Finding]] = lambda trip: []
        self.on_step: Callable[[OptimizerWatch], list[Finding]] = lambda watch: []
        self.on_trace: Callable[[Trace, OptimizerWatch | None], list[Finding]] = lambda trace, watch: []
        self.on_cut: Callable[[Trace | None, Line | None], list[Finding]] = lambda trace, line: []
        self.born: dict[int, tuple[weakref.ref[Any], Line | None]] = {}
        self.loaded_at: dict[int, int] = {}
        self.batch: int | None = None
        self.epoch: int | None = None
        self.dead = False
        self.replaying = False
        self.in_root = False
        self.in_backward = 0
        self.in_step = 0
        self.in_scaler = 0
        self.scaling = False
        self.skips = 0
        self.trips = 0
        self.untaped_trips = 0
        self.last_loss: float | None = None
        self.last_loss_tensor: torch.Tensor | None = None
        self.last_line: Line | None = None
        self.trace: Trace | None = None
        self.tracer: Tracer | None = None
        self._tracer_mode: private.BottomMode | None = None
        self._want_calls = bool(options.get("trace_layers") or options.get("expect") or options.get("record_graph"))
        self._calls_taken = False
        self._pending_trace: Trace | None = None
        self._weights_before: list[torch.Tensor] | None = None
        self.update_ratios: dict[int, list[tuple[int, float]]] = {}
        self.mode = private.BottomMode(TapeMode(self.tape, lambda: not self.mode.on or self.closed()))
        self.root_hook = private.RootHook(self.enter_root, self.leave_root)
        self._thread = threading.get_ident()
        self._root_rng: Any = None
        self._root_training = True
        self._root_line: Line | None = None
        self._root_start = 0
        self._always = 0
        self._taping = 0
        self._looking = 0
        self._last_step_end = _now()
        self._op_cost = _cost_of_one_taped_call()
        self._recorded = 0

    # --- state

    def closed(self) -> bool:
        """Whether nothing is to be recorded at this moment."""
        return self.dead or self.replaying or self.in_backward > 0 or self.in_root or self.in_scaler > 0

    def elsewhere(self) -> bool:
        """Whether this is not the thread that is watched."""
        return threading.get_ident() != self._thread

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
        self._end_trace()
        self.tape.clear()

    # --- root modules

    def enter_root(self, module: torch.nn.Module, args: Any) -> bool:
        """A module is called from outside any module; returns whether its end is of interest."""
        if self.closed() or self.elsewhere() or torch.compiler.is_compiling():
            return False
        began = _now()
        if private.in_transform() or torch._C._get_tracing_state() is not None:
            return False
        grad = torch.is_grad_enabled()
        if not grad and not (self.governor.look_on and module.training):
            return False
        if not self.governor.tape_on and not self.governor.look_on:
            return False
        self.in_root = True
        self.mode.pop()
        self._root_training = module.training
        self._root_line = line_of(user_frame(sys._getframe(1)))
        if self.names.know(module):
            self.sink_roots(module)
        if grad:
            self.tape.sweep()
            self._root_rng = rng_now()
            self._taping += _now() - began
        if self.governor.look_on and not _has_fast_path(module):
            self._begin_trace(module)
        self._root_start = _now()
        return True

    def leave_root(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """The root module's forward has ended (output is None when it raised)."""
        if not self.in_root:
            return
        began = _now()
        self.in_root = False
        if self.dead:
            return
        if self.tracer is not None:
            self._looking += began - self._root_start
        if not torch.is_grad_enabled() or self.replaying:
            return
        if output is not None and self.governor.tape_on:
            outputs = [weakref.ref(t) for t in tensors_in(output)]
            self.tape.add(
                Entry(
                    module,
                    args,
                    kwargs,
                    outputs,
                    self._root_line,
                    self._root_rng,
                    versions_of(args),
                    True,
                    self._root_training,
                    autocast_now(),
                )
            )
        if self.governor.tape_on and not self.in_backward:
            self.mode.push()
        self._taping += _now() - began

    def opaque_call(self, fn: Any, original: Any, args: Any, kwargs: Any) -> Any:
        """Call a compiled callable as one opaque root: neither modes nor hooks of osler may be seen by the compiler."""
        if self.dead or self.replaying or self.elsewhere() or torch.compiler.is_compiling():
            return fn(*args, **kwargs)
        was_root = self.in_root
        taped, lifted = self.mode.on, self.root_hook.lift()
        self.mode.pop()
        if self._tracer_mode is not None:
            self._tracer_mode.pop()
            assert self.tracer is not None
            self.tracer.unhook()
        record = not was_root and not self.in_backward and torch.is_grad_enabled() and self.governor.tape_on
        rng = rng_now() if record else None
        line = user_line() if record or self.tracer is not None else None
        self.in_root = True
        try:
            output = fn(*args, **kwargs)
        finally:
            self.in_root = was_root
            if lifted:
                self.root_hook.restore()
            if self._tracer_mode is not None:
                self._tracer_mode.push()
                if self.tracer is not None and was_root:
                    self.tracer.hook()
            if taped:
                self.mode.push()
        module = original if isinstance(original, torch.nn.Module) else None
        if self.trace is not None and self.tracer is not None:
            self.trace.opaque.append(
                type(module).__name__ if module is not None else getattr(original, "__name__", "?")
            )
            if module is not None:
                self.tracer.know(module)
            parameters: list[torch.Tensor] = list(module.parameters()) if module is not None else []
            self.tracer.opaque("compiled call", line, args, output, parameters)
        if record:
            if module is not None and self.names.know(module):
                self.sink_roots(module)
            outputs = [weakref.ref(t) for t in tensors_in(output)]
            training = module.training if module is not None else True
            self.tape.add(
                Entry(
                    original,
                    args,
                    kwargs,
                    outputs,
                    line,
                    rng,
                    versions_of(args),
                    module is not None,
                    training,
                    autocast_now(),
                )
            )
            self.mode.push()
        return output

    def sink_roots(self, module: torch.nn.Module) -> None:
        """A root module is seen for the first time."""
        for watch in self.optimizers.values():
            self.series.rename(watch.number)

    # --- close looks

    def _begin_trace(self, module: torch.nn.Module) -> None:
        if self.trace is None:
            self.trace = Trace(self.step)
            self.tracer = Tracer(self.trace, self.names.module, self._want_calls and not self._calls_taken)
            self._tracer_mode = private.BottomMode(self.tracer)
            self.tracer.mode = self._tracer_mode
        assert self.tracer is not None and self._tracer_mode is not None
        self.tracer.know(module)
        self._tracer_mode.push()
        self.tracer.hook()

    def _end_trace(self) -> Trace | None:
        trace, self.trace = self.trace, None
        if self._tracer_mode is not None:
            self._tracer_mode.pop()
        if self.tracer is not None:
            self.tracer.unhook()
        self.tracer = self._tracer_mode = None
        return trace

    # --- backward

    def begin_backward(self, roots: Sequence[torch.Tensor], grad_tensors: Any, keep: bool, create: bool) -> None:
        """`backward` is entered with these tensors."""
        began = _now()
        self.mode.pop()
        if self.tracer is not None and self.trace is not None:
            self.tracer.finish(list(roots))
            self._pending_trace = self._end_trace()
        root = roots[0] if roots else None
        if root is not None and root.numel() == 1 and grad_tensors is None:
            value = root.detach()
            if value.device.type == "cpu":
                self.last_loss, self.last_loss_tensor = float(value), None
            else:
                self.last_loss, self.last_loss_tensor = None, value
        else:
            self.last_loss = self.last_loss_tensor = None
        self._always += _now() - began
        began = _now()
        if self.tape.entries:
            self.last_line = line_of(user_frame(sys._getframe(1)))
            self.tape.close(roots, grad_tensors, self.last_line, keep=keep or create, scaled=self.scaling)
        self._taping += _now() - began

    def end_backward(self, roots: Sequence[torch.Tensor], error: BaseException | None) -> None:
        """`backward` has returned, or raised."""
        if error is not None:
            if isinstance(error, RuntimeError) and "does not require grad" in str(error):
                self.guarded("explaining why the loss has no graph", lambda: self._cut(roots))
            elif isinstance(error, RuntimeError) and "nan values" in str(error):
                self.guarded("replaying the step", lambda: self.trip("backward raised", None))
            return
        began = _now()
        if self.in_step and not self.scaling:
            watch = next((w for w in self.optimizers.values() if w.closure), None)
            if watch is not None:
                self._check(watch)
                self.tape.clear()
        elif (
            not self.optimizers
            and self.last_loss is not None
            and not math.isfinite(self.last_loss)
            and not self.scaling
        ):
            self.guarded("replaying the step", lambda: self.trip("loss", None))
            self.tape.clear()
        self._always += _now() - began

    def _cut(self, roots: Sequence[torch.Tensor]) -> None:
        for finding in self.on_cut(self._pending_trace or self._end_trace(), self.last_line or user_line(3)):
            self.emit(finding)

    # --- optimizer steps

    def watch_of(self, optimizer: torch.optim.Optimizer) -> OptimizerWatch:
        """What is known of an optimizer."""
        watch = self.optimizers.get(id(optimizer))
        if watch is None or watch.ref() is not optimizer:
            born = self.born.get(id(optimizer))
            line = born[1] if born is not None and born[0]() is optimizer else None
            watch = OptimizerWatch(optimizer, len(self.optimizers), self.settings.gradients.window, line)
            self.optimizers[id(optimizer)] = watch
        return watch

    def before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """The optimizer is about to apply the gradients."""
        began = _now()
        self.in_step += 1
        self.mode.pop()
        watch = self.watch_of(optimizer)
        watch.refresh(optimizer)
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        watch.closure = closure is not None
        if watch.line is None or self.governor.look_on:
            watch.line = line_of(user_frame(sys._getframe(1)))
        if self._pending_trace is not None and not watch.closure:
            looking = _now()
            self._weights_before = [p.detach().clone() for p in watch.parameters]
            looking = _now() - looking
            self._looking += looking
            began += looking
        if not watch.closure and not self.in_scaler:
            self._check(watch)
        self._always += _now() - began

    def _check(self, watch: OptimizerWatch) -> None:
        row = gradient_norms(watch.parameters)
        loss = self.last_loss
        if loss is None and self.last_loss_tensor is not None:
            loss = self.last_loss = float(self.last_loss_tensor)
            self.last_loss_tensor = None
        total = math.sqrt(sum(n * n for n in row if n != NO_GRADIENT))
        optimizer = watch.ref()
        lr = watch.lr(optimizer) if optimizer is not None else math.nan
        watch.rows.append(row)
        watch.row_steps.append(watch.steps)
        watch.history.append(StepRecord(watch.steps, lr, total, loss))
        self.series.step(watch, total, lr, loss, row, self.names)
        if math.isfinite(total) and (loss is None or math.isfinite(loss)):
            return
        if (loss is not None and not math.isfinite(loss)) or really_bad(watch.parameters):
            self.guarded("replaying the step", lambda: self.trip("gradients", watch))

    def after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """The optimizer has applied the gradients."""
        self.in_step = max(0, self.in_step - 1)
        watch = self.watch_of(optimizer)
        watch.stepped()
        if self._weights_before is not None:
            self._measure_updates(watch)
        began = _now()
        if not self.in_scaler:
            self.step_done(watch, began)
        else:
            self._always += _now() - began

    def step_done(self, watch: OptimizerWatch, began: int) -> None:
        """A step, applied or skipped, is over."""
        if not self.scaling:
            self.tape.clear()
        if self._pending_trace is not None:
            looking = _now()
            trace, self._pending_trace = self._pending_trace, None
            self._calls_taken = self._calls_taken or bool(trace.calls)
            self.guarded("judging a close look", lambda: self._emit_all(self.on_trace(trace, watch)))
            looking = _now() - looking
            self._looking += looking
            began += looking
        watch.steps += 1
        self.step = max(self.step, watch.steps)
        if watch.steps % 16 == 0:
            self.guarded("judging the gradients", lambda: self._emit_all(self.on_step(watch)))
            self.series.flush()
        now = _now()
        self._always += now - began
        operations = self.tape.recorded - self._recorded
        self._recorded = self.tape.recorded
        self.governor.step_done(
            now - self._last_step_end, self._always, self._taping + operations * self._op_cost, self._looking
        )
        self._always = self._taping = self._looking = 0
        if self.governor.whole and not self.dead:
            self.mode.push()
        self._last_step_end = _now()
        if watch.steps in (16, 64) or watch.steps % 256 == 0:
            self.sink.overhead(self.governor.figures())

    def _measure_updates(self, watch: OptimizerWatch) -> None:
        before, self._weights_before = self._weights_before, None
        began = _now()
        assert before is not None
        with torch.no_grad():
            for i, (old, p) in enumerate(zip(before, watch.parameters)):
                if p.dim() < 2 or p.layout != torch.strided or not p.is_floating_point() or p.grad is None:
                    continue
                weight = float(torch.linalg.vector_norm(old))
                if weight > 0:
                    ratio = float(torch.linalg.vector_norm(p.detach() - old)) / weight
                    kept = self.update_ratios.setdefault((watch.number << 20) + i, [])
                    kept.append((watch.steps, ratio))
                    del kept[:-64]
        self._looking += _now() - began

    def scaler_done(self, optimizer: torch.optim.Optimizer) -> None:
        """GradScaler.step has returned, whether or not it called the optimizer."""
        watch = self.watch_of(optimizer)
        watch.refresh(optimizer)
        began = _now()
        self._check_scaled(watch)
        self.step_done(watch, began)

    def _check_scaled(self, watch: OptimizerWatch) -> None:
        row = gradient_norms(watch.parameters)
        total = math.sqrt(sum(n * n for n in row if n != NO_GRADIENT))
        optimizer = watch.ref()
        lr = watch.lr(optimizer) if optimizer is not None else math.nan
        if math.isfinite(total):  # the row of a skipped step says nothing about the model
            watch.rows.append(row)
            watch.row_steps.append(watch.steps)
        watch.history.append(StepRecord(watch.steps, lr, total, self.last_loss))
        self.series.step(watch, total, lr, self.last_loss, row, self.names)

    def scaler_update(self, found_inf: bool | None) -> None:
        """GradScaler.update is about to change the scale in place."""
        loss_bad = any(not math.isfinite(float(v.double().sum())) for s in self.tape.segments for v in s.losses)
        unscaled_bad = self.unscaled_loss is not None and not math.isfinite(self.unscaled_loss)
        self.skips = self.skips + 1 if found_inf else 0
        watch = next(reversed(self.optimizers.values()), None)
        if unscaled_bad or (loss_bad and self.unscaled_loss is None):
            self.guarded("replaying the step", lambda: self.trip("scaled loss", watch, done=True))
        elif self.skips >= self.settings.numbers.scaler_skips:
            self.skips = 0
            self.guarded("replaying the step", lambda: self.trip("scaled gradients", watch, done=True))
        self.tape.clear()
        self.unscaled_loss = None

    unscaled_loss: float | None = None

    # --- trips and findings

    def trip(self, kind: str, watch: OptimizerWatch | None, done: bool = False) -> None:
        """A number has gone bad: replay what is held and say what was found.

        Args:
            kind: what gave it away.
            watch: the optimizer whose step it is.
            done: the step has been counted already (a scaler's update comes after it).
        """
        if self.replaying:
            return
        step = max(0, watch.steps - done) if watch is not None else self.step
        self.trips += 1
        if self.trips > 1 and self._seen_again(step):
            if self.trips > self.settings.numbers.max_replays:
                return
        elif self.trips > 4 * self.settings.numbers.max_replays:
            return
        began = _now()
        self.replaying = True
        self.mode.pop()
        lifted = self.root_hook.lift()
        try:
            segments = list(self.tape.segments)
            if not segments:
                self.untaped_trips += 1
            self._emit_all(self.on_trip(Trip(kind, step, watch, segments, self.in_scaler > 0 or self.scaling)))
        finally:
            self.replaying = False
            if lifted:
                self.root_hook.restore()
            self.governor.tripped()
            self._last_step_end += _now() - began  # the replay is no step's overhead; its time is in the finding

    def _seen_again(self, step: int) -> bool:
        """Count a repeated failure; True where the finding it repeats is known."""
        again = next((f for f in self.seen.values() if f.rule == "nonfinite-parameter"), None)
        if again is None:
            return False
        again.count += 1
        again.last_step = step
        return True

    def _emit_all(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            self.emit(finding)

    def emit(self, finding: Finding) -> None:
        """Hand a finding on, once; later occurrences are counted."""
        s = self.settings
        if finding.rule in s.ignore or (s.select and finding.rule not in s.select):
            return
        known = self.seen.get(finding.key)
        if known is None:
            self.seen[finding.key] = finding
            self.sink.finding(finding)
        else:
            known.count += 1
            known.last_step = finding.last_step
            if known.count & (known.count - 1) == 0:  # at powers of two: enough to survive a kill
                self.sink.again(known.key, known.count, known.last_step)

    def close(self) -> None:
        """The process or the watch ends."""
        for finding in self.seen.values():
            if finding.count > 1:
                self.sink.again(finding.key, finding.count, finding.last_step)
        self.series.flush()
        self.sink.overhead(self.governor.figures())


class Trip:
    """A number that went bad, with what is needed to look into it."""

    __slots__ = ("kind", "scaled", "segments", "step", "watch")

    def __init__(
        self, kind: str, step: int, watch: OptimizerWatch | None, segments: list[Segment], scaled: bool
    ) -> None:
        self.kind = kind
        self.step = step
        self.watch = watch
        self.segments = segments
        self.scaled = scaled


def _has_fast_path(module: torch.nn.Module) -> bool:
    """Whether a function mode would keep a submodule from its fused inference path, and so change its numbers."""
    fused = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.TransformerEncoder)
    return any(isinstance(m, fused) and not m.training for m in module.modules())


def _cost_of_one_taped_call() -> float:
    """Nanoseconds that the tape adds to one torch function call on this machine."""
    tape = Tape(1 << 30, 1)
    mode = TapeMode(tape, lambda: False)
    x = torch.zeros(1, requires_grad=True)

    def run() -> int:
        began = _now()
        for _ in range(64):
            torch.neg(x)
        return _now() - began

    with torch.enable_grad():
        run()
        bare = min(run() for _ in range(2))
        with mode:
            run()
            taped = min(run() for _ in range(2))
    return max(0.0, (taped - bare) / 64)
