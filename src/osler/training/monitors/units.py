"""What the units of hidden layers do: dead, saturated, collapsed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

import torch

from osler.core.finding import Confidence, Finding
from osler.core.frames import Line
from osler.training.activations import Activation, Spread
from osler.training.monitors.common import make, number
from osler.training.optimizers import OptimizerWatch
from osler.training.recorder import Recorder
from osler.training.trace import Trace

_LOOKS = 6  # close looks before a layer is judged


@dataclass(slots=True)
class _Relu:
    looks: deque[tuple[int, torch.Tensor]] = field(default_factory=lambda: deque(maxlen=8))
    samples: int = 0


class UnitMonitor:
    """dead-relu, saturated-activation, activation-collapse."""

    detects: ClassVar[tuple[str, ...]] = ("dead-relu", "saturated-activation", "activation-collapse")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._s = recorder.settings.gradients
        self._relus: dict[Any, _Relu] = {}
        self._limits: dict[Any, deque[tuple[int, float]]] = {}
        self._spreads: dict[Any, list[tuple[int, float, float]]] = {}
        self._judged = False
        self._any_dead = False
        self._any_collapsed = False
        self._opaque: set[str] = set()

    def trace(self, trace: Trace, watch: OptimizerWatch | None) -> list[Finding]:
        """A close look."""
        self._opaque.update(trace.opaque)
        dead: list[tuple[Activation, int, float, int]] = []
        flat: list[tuple[Activation, int, float]] = []
        collapsed: list[tuple[Spread, int, float, float]] = []
        counts: dict[Any, int] = {}
        for a in trace.activations:
            # The same line may run several times in a step (a shared block, a loop over layers).
            counts[a.place] = counts.get(a.place, -1) + 1
            key = (a.place, counts[a.place])
            if a.alive is not None:
                found = self._relu(key, a, trace.step)
                if found is not None:
                    dead.append((a, *found))
            elif a.hidden:
                level = self._limit(key, a, trace.step)
                if level is not None:
                    flat.append((a, *level))
        fallen = False
        for order, s in enumerate(trace.spreads):
            drop = self._spread((s.module, order), s, trace.step)
            if drop is not None:
                collapsed.append((s, *drop))
                fallen = fallen or s.spread <= self._s.collapse_spread
        if not fallen:
            collapsed = []  # layers on their way down are named only along with one that has arrived
        findings = []
        if dead:
            self._any_dead = True
            findings.append(self._dead(dead))
        if flat:
            findings.append(self._saturated(flat))
        # A dead layer makes all samples alike: that is said already. And one collapse is one cause.
        if collapsed and not self._any_dead and not self._any_collapsed:
            self._any_collapsed = True
            findings.append(self._collapsed(collapsed))
        return findings

    def not_checked(self) -> Iterator[tuple[str, str]]:
        """What could not be judged."""
        if self._opaque:
            for rule in self.detects:
                yield rule, f"compiled regions show no activations ({', '.join(sorted(self._opaque)[:3])})"
        elif not self._judged and (self._relus or self._limits or self._spreads):
            for rule in self.detects:
                yield rule, f"fewer than {_LOOKS} close looks at the activations"

    # --- dead

    def _relu(self, key: Any, a: Activation, step: int) -> tuple[int, float, int] | None:
        seen = self._relus.setdefault(key, _Relu())
        assert a.alive is not None
        if seen.looks and seen.looks[-1][1].shape != a.alive.shape:
            seen.looks.clear()
            seen.samples = 0
        seen.looks.append((step, a.alive))
        seen.samples += a.samples
        if len(seen.looks) < _LOOKS or seen.samples < 64:
            return None
        self._judged = True
        # The longest run of looks, up to now, through which most units were dead: a layer may die after a healthy start.
        alive = torch.zeros_like(seen.looks[-1][1])
        first, dead = -1, alive
        looks = 0
        for step, mask in reversed(seen.looks):
            alive = alive | mask
            if float((~alive).float().mean()) < self._s.dead_share:
                break
            first, dead, looks = step, ~alive, looks + 1
        if looks < _LOOKS:
            return None
        return first, float(dead.float().mean()), int(dead.sum())

    def _dead(self, found: list[tuple[Activation, int, float, int]]) -> Finding:
        a, first, share, count = found[0]
        assert a.alive is not None
        more = f"; {len(found) - 1} layers after it likewise" if len(found) > 1 else ""
        return self._make(
            "dead-relu",
            a.line,
            a.module,
            first,
            f"{count} of {a.alive.numel()} units of the {a.name} {_at(a.module, a.line)} are 0 on every sample of the last {_LOOKS} or more looks{more}.",
            "Lower the learning rate or warm it up, use He initialisation with zero bias, or LeakyReLU / GELU; units that are dead do not come back.",
            {"dead": count, "units": a.alive.numel(), "share": share, "layers": len(found)},
        )

    # --- saturated

    def _limit(self, key: Any, a: Activation, step: int) -> tuple[int, float] | None:
        looks = self._limits.setdefault(key, deque(maxlen=8))
        looks.append((step, a.low + a.high))
        if len(looks) < _LOOKS:
            return None
        self._judged = True
        level = median([v for _, v in looks])
        return (looks[0][0], level) if level >= self._s.saturation_share else None

    def _saturated(self, found: list[tuple[Activation, int, float]]) -> Finding:
        a, first, level = found[0]
        return self._make(
            "saturated-activation",
            a.line,
            a.module,
            first,
            f"{level:.0%} of the outputs of the {a.name} {_at(a.module, a.line)} sit at its limits: its derivative there is almost 0.",
            "Scale the inputs to zero mean and unit variance, use Xavier initialisation or a normalisation layer before it"
            + ("; scale attention scores by 1/sqrt(d)." if a.name == "softmax" else "."),
            {"share": level, "low": a.low, "high": a.high, "layers": len(found)},
        )

    # --- collapsed

    def _spread(self, key: Any, s: Spread, step: int) -> tuple[int, float, float] | None:
        if s.given < 0.5:
            return None  # samples that are alike may well be treated alike
        seen = self._spreads.setdefault(key, [])
        seen.append((step, s.spread, s.rank))
        del seen[1:-63]
        if len(seen) < _LOOKS:
            return None
        self._judged = True
        start = max(v for _, v, _ in seen[:3])
        # The cause is the first layer that has lost its spread, not the one that has lost most of it.
        if start < self._s.collapse_start or any(v > 5 * self._s.collapse_spread for _, v, _ in seen[-2:]):
            return None
        if seen[-1][1] > start / 5:
            return None
        # It falls look after look; a fall at one stroke is a layer that was killed, or other data.
        if sum(5 * self._s.collapse_spread < v < 0.75 * start for _, v, _ in seen) < 2:
            return None
        onset = next(step for step, v, _ in seen if v <= 5 * self._s.collapse_spread)
        return onset, start, s.spread

    def _collapsed(self, found: list[tuple[Spread, int, float, float]]) -> Finding:
        s, onset, start, now = found[0]
        return self._make(
            "activation-collapse",
            s.line,
            s.module,
            onset,
            f"The outputs of {s.module} ({s.kind}) for different samples have become the same: their spread fell from {number(start)} to {number(now)} "
            f"(1 is well spread), effective rank {number(s.rank)}.",
            "Stop the gradient on one branch (siamese nets), add a term that keeps the variance up (VICReg, contrastive negatives), or lower the "
            "learning rate if a layer died.",
            {"spread_before": start, "spread": now, "effective_rank": s.rank, "layers": len(found)},
            confidence=Confidence.PROBABLE,
        )

    def _make(
        self,
        rule: str,
        line: Line | None,
        module: str | None,
        first: int,
        message: str,
        fix: str,
        evidence: dict[str, object],
        confidence: Confidence = Confidence.DEFINITE,
    ) -> Finding:
        names = self._recorder.names
        touches = [f"parameter:{n}" for r in names.roots() for n, _ in r.named_parameters()]
        return make(
            self._recorder,
            rule,
            message,
            line=line,
            step=self._recorder.step,
            first_step=first,
            fix=fix,
            evidence=evidence,
            touches=[f"module:{module}" if module else "module:", *touches],
            confidence=confidence,
            module=module,
        )


def _at(module: str | None, line: Line | None) -> str:
    if module:
        return f"in {module}"
    return f"at line {line.line}" if line else "outside modules"
