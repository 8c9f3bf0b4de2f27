"""Close looks: when a step is traced, and how far its update moves the weights."""

from __future__ import annotations

import time
from typing import Any

import torch

from osler.core.frames import Line
from osler.training import private
from osler.training.histograms import Histograms
from osler.training.naming import Names
from osler.training.optimizers import OptimizerWatch
from osler.training.trace import Trace, TraceMode, Tracer

_now = time.perf_counter_ns
_KEPT = 64  # update ratios kept per parameter


class Looks:
    """Starts and ends traces and measures updates.

    Attributes:
        tracer: at work from a step's first forward to its backward, else None.
        pending: a finished trace that waits for its optimizer step.
        ratios: |update| / |weight| per optimizer number and parameter index, as (step, ratio).
        failures: what stopped looks, in words.
        histograms: log-magnitude histograms of the gradients.
        spent: nanoseconds since it was last set to 0.
    """

    def __init__(self, names: Names, want_calls: bool) -> None:
        self._names = names
        self._want_calls = want_calls
        self._mode = TraceMode()
        self._bottom = private.BottomMode(self._mode)
        self.tracer: Tracer | None = None
        self.pending: Trace | None = None
        self.ratios: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self.spent = 0
        self.failures: list[str] = []
        self.histograms = Histograms()
        self._weights: list[torch.Tensor] | None = None

    def begin(self, module: torch.nn.Module, args: Any, step: int) -> None:
        """A root module is called in a step that is to be looked at."""
        began = _now()
        if self.tracer is None:
            self.tracer = self._mode.tracer = Tracer(Trace(step), self._names.module, self._want_calls)
        self.tracer.know(module, args)
        self._bottom.push()
        self.tracer.hook()
        self.spent += _now() - began

    def stop(self) -> Trace | None:
        """End the trace under way and return it."""
        tracer, self.tracer, self._mode.tracer = self.tracer, None, None
        self._bottom.pop()
        if tracer is None:
            return None
        tracer.unhook()
        return tracer.trace

    def close(self) -> None:
        """End what is under way and take the mode out for good."""
        self.stop()
        self._bottom.close()

    def purge(self) -> None:
        """Take the mode off the stack for good (see `private.BottomMode`)."""
        self._bottom.pop()

    def to_backward(self, roots: list[torch.Tensor]) -> None:
        """The backward begins: the trace is complete."""
        began = _now()
        assert self.tracer is not None
        self.tracer.finish(roots)
        trace = self.stop()
        if trace is not None and trace.failed is None:
            self.pending = trace
        elif trace is not None:
            self.failures.append(f"{type(trace.failed).__name__}: {trace.failed}")
        self.spent += _now() - began

    def pause(self) -> bool:
        """Hide from a compiler; returns whether there was anything to hide."""
        on = self._bottom.on
        self._bottom.pop()
        if self.tracer is not None:
            self.tracer.unhook()
        return on

    def resume(self, inside: bool) -> None:
        """Go on after `pause`; `inside` a root the module calls are followed again."""
        if self.tracer is not None:
            self._bottom.push()
            if inside:
                self.tracer.hook()

    def opaque(self, name: str, line: Line | None, module: torch.nn.Module | None, args: Any, output: Any) -> None:
        """A compiled call has been made in a step that is looked at."""
        if self.tracer is None:
            return
        self.tracer.trace.opaque.append(name)
        parameters: list[torch.Tensor] = []
        if module is not None:
            self.tracer.know(module, args)
            parameters = list(module.parameters())
        self.tracer.opaque("compiled call", line, args, output, parameters)

    def before_update(self, watch: OptimizerWatch) -> None:
        """Keep the weights of an optimizer about to step."""
        if self.pending is None or watch.closure:
            return
        began = _now()
        self._weights = [p.detach().clone() for p in watch.parameters]
        watch.peaks.append((watch.steps, self.histograms.add(watch.number, watch.parameters, watch.steps)))
        self.spent += _now() - began

    def after_update(self, watch: OptimizerWatch) -> None:
        """Compare with the weights kept."""
        before, self._weights = self._weights, None
        if before is None:
            return
        began = _now()
        with torch.no_grad():
            for i, (old, p) in enumerate(zip(before, watch.parameters)):
                if p.dim() < 2 or p.layout != torch.strided or not p.is_floating_point() or p.grad is None:
                    continue
                weight = float(torch.linalg.vector_norm(old))
                if weight > 0:
                    kept = self.ratios.setdefault((watch.number, i), [])
                    kept.append((watch.steps, float(torch.linalg.vector_norm(p.detach() - old)) / weight))
                    del kept[:-_KEPT]
        self.spent += _now() - began

    def take(self) -> Trace | None:
        """The trace that waited for its step, once."""
        trace, self.pending = self.pending, None
        if trace is not None and trace.calls:
            self._want_calls = False
        return trace


def has_fast_path(module: torch.nn.Module) -> bool:
    """Whether a function mode would keep a submodule from its fused inference path, and so change its numbers."""
    fused = (torch.nn.MultiheadAttention, torch.nn.TransformerEncoderLayer, torch.nn.TransformerEncoder)
    return any(isinstance(m, fused) and not m.training for m in module.modules())
