"""How large gradients and updates are, judged relative to their own history, their neighbours and their weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import ClassVar

import torch

from osler.core.finding import Confidence, Finding, Severity
from osler.core.frames import Line
from osler.training.monitors.common import listed, make, number
from osler.training.naming import module_of
from osler.training.optimizers import OptimizerWatch
from osler.training.recorder import Recorder
from osler.training.trace import ZERO_WEIGHT, Cut, Trace

_LAYERS = 3  # fewer weight layers than this have no depth to vanish along
_LOOKS = 8  # close looks before update sizes are judged


class MagnitudeMonitor:
    """vanishing-gradient, exploding-gradient, zero-gradient, update-ratio."""

    detects: ClassVar[tuple[str, ...]] = ("vanishing-gradient", "exploding-gradient", "zero-gradient", "update-ratio")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._s = recorder.settings.gradients
        self._trace: Trace | None = None
        self._full: set[int] = set()
        self._ratios_judged: set[int] = set()

    # --- observations

    def trace(self, trace: Trace, watch: OptimizerWatch | None) -> list[Finding]:
        """A close look: remember it for the lines, judge the update sizes."""
        self._trace = trace
        return self._updates(watch) if watch is not None and not watch.closure else []

    def step(self, watch: OptimizerWatch) -> list[Finding]:
        """Judge the window."""
        findings = list(self.exploding(watch))
        if len(watch.rows) >= self._s.window:
            self._full.add(watch.number)
            findings += self._window(watch)
            if not watch.closure and watch.steps <= 2 * self._s.window:
                findings += self._updates(watch)  # close looks may be far apart by now
        return findings

    def end(self, watch: OptimizerWatch) -> list[Finding]:
        """The training has ended: what can be said of a last, incomplete window."""
        return list(self.exploding(watch))

    def not_checked(self) -> Iterator[tuple[str, str]]:
        """What could not be judged."""
        for watch in self._recorder.optimizers.values():
            if watch.number not in self._full:
                for rule in ("vanishing-gradient", "zero-gradient"):
                    yield rule, f"{watch.label} took {watch.steps} steps; a window of {self._s.window} is needed"
            if watch.closure:
                yield "update-ratio", f"{watch.label} takes a closure: its steps have no fixed size"
            elif watch.number not in self._ratios_judged:
                yield "update-ratio", f"{watch.label} was looked at closely fewer than {_LOOKS} times"

    # --- vanishing and zero

    def _window(self, watch: OptimizerWatch) -> list[Finding]:
        rows = torch.tensor(list(watch.rows), dtype=torch.float64)
        least, most, middle = (v.tolist() for v in (rows.amin(0), rows.amax(0), rows.median(0).values))
        count = len(least)
        zero = [i for i in range(count) if least[i] == 0.0 and most[i] == 0.0]
        names: list[str] = []
        findings: list[Finding] = []
        if zero:
            names = watch.names(self._recorder.names)
            zero = self._whole_modules(zero, names)
            optimizer = watch.ref()
            if zero and watch.lr(optimizer) != 0.0:
                findings += [self._zero(watch, group, cut, names) for group, cut in self._by_cause(watch, zero)]
        dead = set(zero)
        layers = [
            i
            for i, p in enumerate(watch.parameters)
            if least[i] >= 0.0 and i not in dead and p.dim() >= 2 and p.numel() > 1
        ]
        found = self._vanishing(watch, middle, layers)
        return findings + ([found] if found is not None else [])

    @staticmethod
    def _whole_modules(zero: list[int], names: list[str]) -> list[int]:
        """Those whose module has no gradient at all: a bias alone may cancel (the last one of a critic, one before a
        softmax or a normalisation) without anything being wrong."""
        silent = set(zero)
        alive = {module_of(n) for i, n in enumerate(names) if i not in silent}
        return [i for i in zero if module_of(names[i]) not in alive]

    def _zero(self, watch: OptimizerWatch, zero: list[int], cut: Cut | None, names: list[str]) -> Finding:
        affected = [names[i] for i in zero]
        step = watch.steps
        if cut is not None:
            line, module, how = cut.line, cut.module, "a product with zeros" if cut.name == "mul" else cut.name
        else:
            line, module = self._first_use(watch.parameters[zero[-1]], watch)
            how = None
        return make(
            self._recorder,
            "zero-gradient",
            f"The gradient of {len(zero)} parameter{'s' if len(zero) > 1 else ''} ({listed(affected)}) was exactly 0 in each "
            f"of the last {len(watch.rows)} steps" + (f": {how} lets nothing through." if how else "."),
            # A term that is weighted by a literal 0 is switched off on purpose (a warm-up, DDP's unused parameters).
            severity=Severity.INFO if how == ZERO_WEIGHT else Severity.WARNING,
            line=line,
            step=step,
            first_step=watch.row_steps[0],
            fix=(
                f"{how} has a derivative of 0: use a straight-through estimator (x + (f(x) - x).detach()), or leave it out "
                "of the training path."
                if how
                else "Look at what lies between these parameters and the loss: a mask of zeros, a rounding, a dead layer."
            ),
            evidence={"parameters": affected[:16], "count": len(zero), "window": len(watch.rows), "operation": how},
            touches=[*(f"parameter:{n}" for n in affected), *(f"module:{module_of(n)}" for n in affected)],
            module=module or module_of(affected[-1]) or None,
            parameter=affected[0],
        )

    def _by_cause(self, watch: OptimizerWatch, zero: list[int]) -> list[tuple[list[int], Cut | None]]:
        """The parameters grouped by the call that lets nothing through to them, None where it is not known."""
        groups: dict[int, tuple[list[int], Cut | None]] = {}
        for i in zero:
            bit = self._trace.bit_of(watch.parameters[i]) if self._trace is not None else None
            flat = self._trace.flat if self._trace is not None and bit is not None else []
            place = next((k for k, cut in enumerate(flat) if bit is not None and (cut.parameters >> bit) & 1), -1)
            groups.setdefault(place, ([], flat[place] if place >= 0 else None))[0].append(i)
        return list(groups.values())

    def _vanishing(self, watch: OptimizerWatch, norms: list[float], layers: list[int]) -> Finding | None:
        if len(layers) < _LAYERS:
            return None
        per_element = {i: norms[i] / watch.parameters[i].numel() ** 0.5 for i in layers}
        if min(per_element.values()) > self._s.vanishing_ratio * max(per_element.values()):
            return None
        layers = self._in_order_of_use(watch, layers)
        rms = [per_element[i] for i in layers]
        reference = max(rms[-_LAYERS:])
        if not reference > 0:
            return None
        ratios = [r / reference for r in rms]
        gone = 0
        while gone < len(ratios) and ratios[gone] <= self._s.vanishing_ratio:
            gone += 1
        # Vanishing is a decay along the depth: a head with a tiny loss weight is small without it.
        if gone == 0 or not _declines([math.log10(max(r, 1e-45)) for r in ratios]):
            return None
        names = watch.names(self._recorder.names)
        affected = [names[layers[i]] for i in range(gone)]
        histograms = self._recorder.looks.histograms
        line, module = self._first_use(watch.parameters[layers[0]], watch)
        step = watch.steps
        return make(
            self._recorder,
            "vanishing-gradient",
            f"The gradient of {affected[0]} is {number(ratios[0])} of that of {names[layers[-1]]} per element "
            f"(median of {len(watch.rows)} steps); {gone} of {len(layers)} layers are at or below {number(self._s.vanishing_ratio)}.",
            line=line,
            step=step,
            first_step=watch.row_steps[0],
            fix="Use ReLU-like activations with He initialisation, normalisation layers or residual connections; for recurrent nets "
            "gates (LSTM, GRU) or shorter sequences.",
            evidence={
                "ratio": ratios[0],
                "layers_affected": gone,
                "layers": len(layers),
                "gradient_rms_first": rms[0],
                "gradient_rms_reference": reference,
                "histogram_peak_first": histograms.median_peak(watch.number, layers[0]),
                "histogram_peak_last": histograms.median_peak(watch.number, layers[-1]),
                "parameters": affected[:16],
                "ratios": [round(math.log10(max(r, 1e-45)), 2) for r in ratios[:64]],
            },
            touches=[*(f"parameter:{n}" for n in affected), *(f"module:{module_of(n)}" for n in affected)],
            module=module_of(affected[0]) or module,
            parameter=affected[0],
        )

    def _in_order_of_use(self, watch: OptimizerWatch, layers: list[int]) -> list[int]:
        """The layers as the forward pass meets them; as they were declared where no close look has seen them all."""
        trace = self._trace
        if trace is None:
            return layers
        order = {bit: place for place, bit in enumerate(trace.first_lines)}
        bits = {i: trace.bit_of(watch.parameters[i]) for i in layers}
        if any(bit not in order for bit in bits.values()):
            return layers
        return sorted(layers, key=lambda i: order[bits[i]])  # type: ignore[index]

    def _first_use(self, p: torch.Tensor, watch: OptimizerWatch) -> tuple[Line | None, str | None]:
        trace = self._trace
        bit = trace.bit_of(p) if trace is not None else None
        if trace is not None and bit is not None and bit in trace.first_lines:
            return trace.first_lines[bit]
        return watch.line, None

    # --- exploding

    def exploding(self, watch: OptimizerWatch) -> Iterator[Finding]:
        """Judge the history of the gradient norm; also asked at a trip, before the numbers are looked at."""
        history = list(watch.history)
        finite = [h for h in history if math.isfinite(h.norm)]
        if len(finite) < 6:
            return
        norms = [h.norm for h in finite]
        recent = median(norms[-3:])
        # Also against where the training began: a spike out of a nearly converged state is steep and comes back.
        if recent < max(self._s.exploding_norm, 0.1 * self._s.exploding_growth * _start(watch)):
            return
        floor_at = min(range(len(norms)), key=lambda i: _level(norms, i))
        floor = _level(norms, floor_at)
        if floor <= 0 or recent / floor < self._s.exploding_growth:
            return
        # Growing out of a plateau is how many trainings begin; an explosion takes the loss along, up or (a critic's) down.
        before = [abs(h.loss) for h in finite[: floor_at + 3] if h.loss is not None]
        after = [abs(h.loss) for h in finite[-3:] if h.loss is not None]
        if before and after and median(after) <= median(before):
            return
        # A jump in one step (a broken batch) is no growth: at least three steps must lie between the levels.
        between = sum(10 * floor < n < recent for n in norms[floor_at:])
        if between < 3:
            return
        yield make(
            self._recorder,
            "exploding-gradient",
            f"The gradient norm of {watch.label} grew from {number(floor)} at step {finite[floor_at].step} to {number(recent)} at step "
            f"{finite[-1].step}, {number(recent / floor)} times, and the loss with it.",
            line=watch.line,
            step=finite[-1].step,
            first_step=finite[floor_at].step,
            fix=f"Lower the learning rate (here {number(finite[-1].lr)}), clip the gradient norm before the step "
            "(torch.nn.utils.clip_grad_norm_), or normalise the layers.",
            evidence={
                "norm_before": floor,
                "norm": recent,
                "growth": recent / floor,
                "learning_rate": finite[-1].lr,
                "norms": [float(f"{n:.4g}") for n in norms[-16:]],
            },
            touches=self._everything(watch),
            optimizer=watch.label,
            severity=Severity.ERROR,
        )

    def _everything(self, watch: OptimizerWatch) -> list[str]:
        names = watch.names(self._recorder.names)
        return [
            f"optimizer:{watch.number}",
            *(f"parameter:{n}" for n in names),
            *(f"module:{module_of(n)}" for n in names),
        ]

    # --- update sizes

    def _updates(self, watch: OptimizerWatch) -> list[Finding]:
        names = watch.names(self._recorder.names)
        medians: dict[str, float] = {}
        for i, name in enumerate(names):
            seen = [r for step, r in self._recorder.looks.ratios.get((watch.number, i), []) if step >= 2]
            if len(seen) >= _LOOKS:
                medians[name] = median(seen[-_LOOKS * 2 :])
        if not medians:
            return []
        self._ratios_judged.add(watch.number)
        high = {n: r for n, r in medians.items() if r > self._s.update_high}
        optimizer = watch.ref()
        lr = watch.lr(optimizer) if optimizer is not None else math.nan
        if high and len(high) * 2 >= len(medians):
            worst = max(high, key=lambda n: high[n])
            return [self._update(watch, list(high), worst, high[worst], lr, too_high=True)]
        if lr > 0 and all(r < self._s.update_low for r in medians.values()) and watch.steps >= self._s.window:
            worst = min(medians, key=lambda n: medians[n])
            if not watch.rows or any(n <= 0 for i, n in enumerate(watch.rows[-1]) if names[i] in medians):
                return []  # no gradient, no update: another rule's business
            steady = len({round(h.lr, 12) for h in watch.history}) == 1
            # A schedule that runs out ends like this; only a rate that never changed is a choice.
            return [self._update(watch, list(medians), worst, medians[worst], lr, too_high=False)] if steady else []
        return []

    def _update(
        self, watch: OptimizerWatch, affected: list[str], worst: str, ratio: float, lr: float, *, too_high: bool
    ) -> Finding:
        what = (
            f"each step rewrites {number(ratio)} of its weight"
            if too_high
            else f"each step changes its weight by {number(ratio)} of itself, below what float32 can hold"
        )
        return make(
            self._recorder,
            "update-ratio",
            f"The updates of {worst} are out of proportion: {what} (median; {len(affected)} layers alike; healthy is about 1e-3).",
            line=watch.born,
            step=watch.steps,
            first_step=0,
            fix=f"{'Lower' if too_high else 'Raise'} the learning rate (here {number(lr)}) by about {number(max(ratio / 1e-3, 1e-3 / max(ratio, 1e-30)))} times.",
            evidence={
                "ratio": ratio,
                "learning_rate": lr,
                "layers_affected": len(affected),
                "parameters": affected[:16],
            },
            touches=self._everything(watch),
            optimizer=watch.label,
            parameter=worst,
            confidence=Confidence.PROBABLE,
        )


def _start(watch: OptimizerWatch) -> float:
    """The gradient norm that the training began with: the median of its first finite ones."""
    finite = [n for n in watch.first_norms if math.isfinite(n)]
    return median(finite) if finite else 0.0


def _level(values: list[float], i: int) -> float:
    """Median of the three values around position i."""
    return median(values[max(0, i - 1) : i + 2])


def _declines(logs: list[float]) -> bool:
    """Whether values rise with their index on the whole: rank correlation of at least 0.3."""
    n = len(logs)
    order = sorted(range(n), key=lambda i: logs[i])
    rank = {i: r for r, i in enumerate(order)}
    mean = (n - 1) / 2
    cov = sum((i - mean) * (rank[i] - mean) for i in range(n))
    var = sum((i - mean) ** 2 for i in range(n))
    return var > 0 and cov / var >= 0.3
