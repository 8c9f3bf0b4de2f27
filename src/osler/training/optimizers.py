"""What is known of one optimizer: its parameters, their gradient norms step by step, its learning rate."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from osler.core.frames import Line
from osler.training import private
from osler.training.histograms import NO_GRADIENT
from osler.training.naming import Names
from osler.training.values import bad


@dataclass(slots=True)
class StepRecord:
    """One optimizer step: its number, learning rate, total gradient norm and loss (None where unknown)."""

    step: int
    lr: float
    norm: float
    loss: float | None


class OptimizerWatch:
    """Follows one optimizer.

    Attributes:
        number: 0 for the first optimizer seen, 1 for the next …
        steps: steps attempted so far, skipped ones included.
        rows: the last window's gradient norms, one row per step in the order of `parameters`; -1 where there was none.
        row_steps: the steps that `rows` belong to.
        history: the last 256 steps.
        first_norms: total gradient norms of the first 8 steps.
        kept: steps with their rows that the curves have not taken yet.
        peaks: of steps looked at closely, each gradient's most frequent magnitude, not taken yet either.
        born, line: where it was constructed and where it was last stepped.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, number: int, window: int, born: Line | None) -> None:
        self.ref = weakref.ref(optimizer)
        self.number = number
        self.kind = type(optimizer).__name__
        self.steps = 0
        self.closure = False
        self.born = born
        self.line: Line | None = None
        self.rows: deque[list[float]] = deque(maxlen=window)
        self.row_steps: deque[int] = deque(maxlen=window)
        self.history: deque[StepRecord] = deque(maxlen=256)
        self.first_norms: list[float] = []
        self.kept: list[tuple[StepRecord, list[float]]] = []
        self.peaks: list[tuple[int, list[float]]] = []
        self.parameters: list[torch.Tensor] = []
        self._group_sizes: list[int] = []
        self._versions: tuple[int, int] | None = None
        self.refresh(optimizer)

    @property
    def label(self) -> str:
        """`SGD`, or `SGD #1` for later ones."""
        return self.kind if self.number == 0 else f"{self.kind} #{self.number}"

    def refresh(self, optimizer: torch.optim.Optimizer) -> None:
        """Read the parameter groups again if they have grown or shrunk."""
        groups = optimizer.param_groups
        if len(groups) == 1 and self._group_sizes == [len(groups[0]["params"])]:
            return
        sizes = [len(g["params"]) for g in groups]
        if sizes != self._group_sizes:
            self._group_sizes = sizes
            self.parameters = [p for g in groups for p in g["params"]]
            self.rows.clear()
            self.row_steps.clear()

    def keep(self, record: StepRecord, row: list[float], window: bool = True) -> None:
        """Remember a step; `window`: its row counts for the judgements."""
        if window:
            self.rows.append(row)
            self.row_steps.append(record.step)
        self.history.append(record)
        if record.step < 8:
            self.first_norms.append(record.norm)
        self.kept.append((record, row))

    def lr(self, optimizer: torch.optim.Optimizer | None) -> float:
        """Learning rate of the first group; NaN where it is a tensor on another device."""
        if optimizer is None:
            return math.nan
        value = optimizer.param_groups[0].get("lr", math.nan)
        if isinstance(value, torch.Tensor):
            return float(value) if value.device.type == "cpu" else math.nan
        return float(value)

    def stepped(self) -> None:
        """The optimizer has just written to its parameters."""
        if self.parameters:
            self._versions = self._versions_now()

    def written_since_step(self) -> bool:
        """Whether something else has written to the first or the last parameter since the last step."""
        if self._versions is None or not self.parameters:
            return False
        return self._versions != self._versions_now()

    def _versions_now(self) -> tuple[int, int]:
        return private.version(self.parameters[0]), private.version(self.parameters[-1])

    def names(self, names: Names) -> list[str]:
        """Names of the parameters, in order."""
        return [names.parameter(p) or f"parameter {i} of {self.label}" for i, p in enumerate(self.parameters)]


def gradient_norms(parameters: Sequence[torch.Tensor]) -> list[float]:
    """The L2 norm of each gradient, -1 where there is none. One synchronisation with the device.

    The norm of finite gradients can overflow (beyond 1.8e19 in float32, 256 in float16), so a non-finite one must be
    looked at exactly (`really_bad`).
    """
    grads = [p.grad for p in parameters]
    present = [g for g in grads if g is not None]
    if not present:
        return [NO_GRADIENT] * len(grads)
    try:
        norms = private.norms(present)
        # where nothing has to be waited for, reading one by one is cheaper than stacking first
        values: list[float] = [n.item() for n in norms] if norms[0].is_cpu else torch.stack(norms).tolist()
    except (RuntimeError, NotImplementedError, TypeError):
        values = [_one_norm(g) for g in present]
    if len(present) == len(grads):
        return values
    it = iter(values)
    return [NO_GRADIENT if g is None else next(it) for g in grads]


def _one_norm(grad: torch.Tensor) -> float:
    local: Any = grad
    if hasattr(local, "to_local"):
        local = local.to_local()
    if local.layout != torch.strided:
        local = local.coalesce().values() if local.layout == torch.sparse_coo else local.to_dense()
    return float(torch.linalg.vector_norm(local)) if local.numel() else 0.0


def really_bad(parameters: Sequence[torch.Tensor]) -> list[int]:
    """Indices of the parameters whose gradient holds a NaN or an infinity, each element looked at."""
    found = []
    for i, p in enumerate(parameters):
        grad: Any = p.grad
        if grad is None:
            continue
        if grad.layout == torch.sparse_coo:
            grad = grad.coalesce().values()
        if bad(grad):
            found.append(i)
    return found
