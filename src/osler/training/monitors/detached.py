"""Parameters that an optimizer owns and that the graph does not reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from osler.core.finding import Confidence, Finding, Severity
from osler.core.frames import Line
from osler.training.histograms import NO_GRADIENT
from osler.training.monitors.common import listed, make
from osler.training.optimizers import OptimizerWatch
from osler.training.recorder import Recorder
from osler.training.trace import Cut, Trace

_WORDS = {
    "data": ".data",
    "detach": ".detach()",
    "detach_": ".detach_()",
    "numpy": ".numpy()",
    "tolist": ".tolist()",
    "item": ".item()",
    "argmax": "argmax",
}


class DetachedMonitor:
    """gradient-detached."""

    detects: ClassVar[tuple[str, ...]] = ("gradient-detached",)

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._last: dict[int, Trace] = {}
        self._said: set[int] = set()
        self._unexplained: list[str] = []

    def trace(self, trace: Trace, watch: OptimizerWatch | None) -> list[Finding]:
        """Keep the last close look of each optimizer."""
        if watch is not None:
            self._last[watch.number] = trace
        return []

    def step(self, watch: OptimizerWatch) -> list[Finding]:
        """Judge once the structure window is full (or the training has ended)."""
        trace = self._last.get(watch.number)
        if watch.number in self._said or trace is None or trace.loss is None or len(watch.rows) < 4:
            return []
        if watch.steps < self._recorder.settings.gradients.structure_window and not self._ending(watch):
            return []
        self._said.add(watch.number)
        names = watch.names(self._recorder.names)
        lost: dict[int, list[str]] = {}
        for i, p in enumerate(watch.parameters):
            if not p.requires_grad or any(row[i] != NO_GRADIENT for row in watch.rows):
                continue
            bit = trace.bit_of(p)
            if bit is None or not (trace.used >> bit) & 1:
                continue
            place = self._cut_for(trace, bit)
            if place is not None:
                lost.setdefault(place, []).append(names[i])
        return [self._finding(trace.cuts[place], cut_off, watch) for place, cut_off in lost.items()]

    def _ending(self, watch: OptimizerWatch) -> bool:
        return (
            self._recorder.dead is False
            and watch.steps >= 4
            and len(watch.rows) == watch.steps
            and watch.steps % 16 != 0
        )

    @staticmethod
    def _cut_for(trace: Trace, bit: int) -> int | None:
        on_the_way = trace.loss[1] if trace.loss else 0
        fallback = None
        for i, cut in enumerate(trace.cuts):
            if not (cut.parameters >> bit) & 1:
                continue
            if (on_the_way >> i) & 1:
                return i
            # What went through numpy or Python numbers comes back without a trace.
            if cut.name in ("numpy", "tolist", "item", "__array__", "detach", "data") and fallback is None:
                fallback = i
        return fallback

    def _finding(self, cut: Cut, names: list[str], watch: OptimizerWatch) -> Finding:
        return make(
            self._recorder,
            "gradient-detached",
            f"{len(names)} parameters of {watch.label} ({listed(names)}) got no gradient in {watch.steps} steps: "
            f"{_how(cut)} cuts the graph between them and the loss.",
            line=cut.line,
            step=watch.steps,
            first_step=0,
            severity=Severity.ERROR,
            fix=_mend(cut),
            evidence={"cut": cut.name, "parameters": names[:16], "count": len(names), "no_grad": cut.no_grad},
            touches=[
                *(f"parameter:{n}" for n in names),
                *(f"module:{n.rpartition('.')[0]}" for n in names),
                f"optimizer:{watch.number}",
            ],
            module=cut.module,
            op=cut.name,
            optimizer=watch.label,
        )

    def nothing_left(self, trace: Trace | None, line: Line | None) -> list[Finding]:
        """`backward` was refused: the loss has no graph at all."""
        cut = None
        if trace is not None and trace.cuts:
            on_the_way = trace.loss[1] if trace.loss else 0
            cut = next((c for i, c in enumerate(trace.cuts) if (on_the_way >> i) & 1), trace.cuts[-1])
        step = self._recorder.step
        frozen = cut is None and all(not p.requires_grad for r in self._recorder.names.roots() for p in r.parameters())
        why = (
            f"{_how(cut)} cuts the graph"
            if cut is not None
            else "no parameter requires a gradient"
            if frozen
            else "nothing that requires a gradient went into it"
        )
        return [
            make(
                self._recorder,
                "gradient-detached",
                f"backward was refused at step {step} because the loss does not depend on any parameter: {why}.",
                line=(cut.line if cut is not None else None) or line,
                step=step,
                first_step=step,
                severity=Severity.ERROR,
                confidence=Confidence.DEFINITE if cut is not None else Confidence.PROBABLE,
                fix=_mend(cut)
                if cut is not None
                else "Check requires_grad of the parameters and that the forward runs under grad mode.",
                evidence={
                    "cut": cut.name if cut is not None else None,
                    "no_grad": cut.no_grad if cut is not None else False,
                },
                touches=[],
                module=cut.module if cut is not None else None,
                op=cut.name if cut is not None else None,
            )
        ]

    def not_checked(self) -> Iterator[tuple[str, str]]:
        """What could not be judged."""
        for watch in self._recorder.optimizers.values():
            if watch.number not in self._said and watch.steps < 4:
                yield "gradient-detached", f"{watch.label} took {watch.steps} steps; 4 are needed"


def _how(cut: Cut) -> str:
    if cut.no_grad:
        return (
            f"{cut.name} under torch.no_grad()"
            if cut.name != "compiled call"
            else "a compiled call under torch.no_grad()"
        )
    return _WORDS.get(cut.name, cut.name)


def _mend(cut: Cut) -> str:
    if cut.no_grad:
        return "Run these layers outside torch.no_grad(), or take their parameters out of the optimizer if they are meant to be frozen."
    if cut.name in ("numpy", "tolist", "item", "__array__"):
        return "Do this computation with torch operations: what leaves torch leaves the graph."
    if cut.name in ("argmax", "argmin"):
        return "argmax has no derivative; use softmax, or a straight-through estimator."
    return f"Remove {_WORDS.get(cut.name, cut.name)} here, or take these parameters out of the optimizer if they are meant to be frozen."
