"""Statistics of activations, computed on the fly from the tensors of one step; nothing of them is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from osler.core.frames import Line
from osler.training.tape import tensors_in

RELU = frozenset(["relu", "relu_", "relu6", "threshold", "threshold_", "hardtanh_relu", "clamp_min", "clamp_min_"])
LIMITED: dict[str, tuple[float, float]] = {
    "sigmoid": (0.0, 1.0),
    "sigmoid_": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "tanh_": (-1.0, 1.0),
    "hardtanh": (-1.0, 1.0),
    "softsign": (-1.0, 1.0),
    "softmax": (0.0, 1.0),
}
_ELEMENTS = 1 << 20  # looked at per tensor: more say no more about a share


@dataclass(slots=True, eq=False)
class Activation:
    """One call of an activation function.

    Attributes:
        name: the function.
        module, line: where.
        alive: for ReLU-like functions, per unit whether any sample of the batch was above 0; shape (units,), bool.
        low, high: for limited functions, the shares of elements within the margin of the lower and the upper limit; for
            softmax `high` is the share of rows with one entry at 1.
        hidden: whether a layer with weights comes after it.
        samples: size of the batch.
    """

    name: str
    module: str | None
    line: Line | None
    alive: torch.Tensor | None = None
    low: float = 0.0
    high: float = 0.0
    hidden: bool = False
    samples: int = 0

    @property
    def place(self) -> tuple[str, str | None, str | None, int | None]:
        """What tells this call from others of the step."""
        return (self.name, self.module, self.line.file if self.line else None, self.line.line if self.line else None)


@dataclass(slots=True, eq=False)
class Spread:
    """How far a layer's outputs for different samples lie apart.

    Attributes:
        spread: mean over features of the standard deviation over the batch of the unit-length outputs, times the square
            root of the number of features: 1 for well spread, 0 for collapsed (Chen & He 2021).
        rank: effective rank (participation ratio) of the centred outputs.
        given: share of the samples given to the model that differ from the first.
    """

    module: str
    kind: str
    line: Line | None
    spread: float
    rank: float
    given: float = 1.0


MARGIN = 0.01  # replaced by the setting `gradients.saturation_margin` when a session begins


def activation_of(
    name: str, output: torch.Tensor, channel_dim: int, module: str | None, line: Callable[[], Line | None]
) -> Activation | None:
    """Statistics of `output` if `name` is an activation function, else None.

    Args:
        output: any shape, with the batch first.
        channel_dim: the dimension of the units: 1 after a convolution, -1 otherwise.
    """
    if output.dim() < 2 or not output.is_floating_point() or output.numel() == 0 or output.layout != torch.strided:
        return None
    x = output.detach()
    if name in RELU:
        units = x.movedim(channel_dim if x.dim() > 2 else -1, 0).flatten(1)
        if units.shape[0] < 4 or units.shape[1] < 4:
            return None
        return Activation(name, module, line(), alive=(units > 0).any(1), samples=units.shape[1])
    limits = LIMITED.get(name)
    if limits is None:
        return None
    low, high = limits
    margin = MARGIN * (high - low)
    if name == "softmax":
        rows = x.flatten(0, -2)[: _ELEMENTS // max(x.shape[-1], 1)]
        if rows.shape[-1] < 3:
            return None
        # A row with a single open entry is 1 by construction (the first row under a causal mask).
        open_rows = (rows > 0).sum(-1) > 1
        peaked = rows.amax(-1) > 1 - margin
        total = max(int(open_rows.sum()), 1)
        return Activation(name, module, line(), high=float((peaked & open_rows).sum()) / total, samples=rows.shape[0])
    flat = x.flatten()[:_ELEMENTS]
    return Activation(
        name,
        module,
        line(),
        low=float((flat < low + margin).float().mean()),
        high=float((flat > high - margin).float().mean()),
        samples=x.shape[0],
    )


def given_spread(args: Any) -> float:
    """Share of the samples of the first batched tensor that differ from the first sample; 1 where there is none."""
    for t in tensors_in(args):
        if t.dim() and t.shape[0] > 1 and t.layout == torch.strided:
            rows = t.detach()[:64].flatten(1) if t.dim() > 1 else t.detach()[:64, None]
            return float((rows != rows[0]).any(1).float().mean())
    return 1.0


def spread_of(output: torch.Tensor, module: str, kind: str, line: Line | None, given: float = 1.0) -> Spread | None:
    """The spread of a layer's output, None where it has no batch of feature vectors to speak of."""
    if output.dim() < 2 or not output.is_floating_point() or output.layout != torch.strided:
        return None
    x = output.detach()
    if x.dim() > 2:
        x = x.flatten(2).mean(-1) if x.dim() > 3 else x.flatten(0, 1)
    x = x[:256, :4096].float()
    n, d = x.shape
    if n < 8 or d < 4:
        return None
    norm = x.norm(dim=1, keepdim=True)
    if not bool(torch.isfinite(norm).all()):
        return None
    unit = x / norm.clamp_min(1e-12)
    spread = float(unit.std(0).mean()) * d**0.5
    centred = x - x.mean(0)
    gram = centred @ centred.T if n <= d else centred.T @ centred
    trace = float(gram.diagonal().sum())
    square = float((gram * gram).sum())
    return Spread(module, kind, line, spread, trace * trace / square if square > 0 else 0.0, given)
