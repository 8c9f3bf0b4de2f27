"""The trainings that the benchmarks watch: small networks on synthetic data with real optimizers.

Each comes with the loss as one call (`F.cross_entropy`) and, under `written_out`, with a loss made of fifteen torch
functions outside any module, which is what a recorder of operations has to follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCHES = 8  # distinct batches that a training goes round, so that the gradients do not die away


@dataclass
class Training:
    """One training under way.

    Attributes:
        model: the network.
        optimizer: its optimizer.
        loss: logits (N, classes) and targets (N,) in, a scalar out.
        batches: pairs of inputs and targets.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Callable[[Tensor, Tensor], Tensor]
    batches: list[tuple[Tensor, Tensor]]
    steps: int = field(default=0)

    def step(self) -> None:
        """Forward, loss, backward, update: what is timed."""
        inputs, targets = self.batches[self.steps % BATCHES]
        self.steps += 1
        self.optimizer.zero_grad()
        loss = self.loss(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()


def written_out(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy with weighted classes, an entropy bonus and a penalty on the logits, operation by operation."""
    log_p = torch.log_softmax(logits, dim=1)
    picked = log_p.gather(1, targets.unsqueeze(1)).squeeze(1)
    weights = torch.where(targets < 3, 1.5, 1.0)
    nll = -(weights * picked).sum() / weights.sum()
    entropy = -(log_p.exp() * log_p).sum(dim=1).mean()
    return nll - 0.01 * entropy + 1e-4 * logits.square().mean()


class CharTransformer(nn.Module):
    """Token classifier: `blocks` pre-norm encoder layers of width `width` over `length` tokens of 96 kinds."""

    def __init__(self, width: int, blocks: int, length: int, kinds: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(kinds, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
        self.head = nn.Linear(width, kinds)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (N, length) to logits (N * length, kinds)."""
        return self.head(self.encoder(self.embedding(tokens) + self.position)).flatten(0, 1)


def mlp(*widths: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn(channels: int) -> nn.Module:
    """Three convolutions with batch norm on 32x32 images of 3 channels, 10 classes."""
    c = channels
    return nn.Sequential(
        nn.Conv2d(3, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(2 * c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * c, 10),
    )  # fmt: skip


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=1e-4)


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def _vectors(batch: int, width: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(batch, width), torch.randint(0, 10, (batch,))) for _ in range(BATCHES)]


def _images(batch: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))) for _ in range(BATCHES)]


def _tokens(batch: int, length: int) -> list[tuple[Tensor, Tensor]]:
    return [(torch.randint(0, 96, (batch, length)), torch.randint(0, 96, (batch * length,))) for _ in range(BATCHES)]


@dataclass(frozen=True)
class Kind:
    """A training that can be made.

    Attributes:
        name: as in the table, with the size of its step in milliseconds on the machine it was sized on.
        model, optimizer, batches: make its parts.
    """

    name: str
    model: Callable[[], nn.Module]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    batches: Callable[[], list[tuple[Tensor, Tensor]]]

    def make(self, written: bool, seed: int = 0) -> Training:
        """A fresh training; `written` chooses the loss of many operations."""
        torch.manual_seed(seed)
        model = self.model()
        return Training(model, self.optimizer(model), written_out if written else F.cross_entropy, self.batches())


KINDS = (
    Kind("MLP, 2 layers, Adam", lambda: mlp(32, 64, 10), _adam, lambda: _vectors(32, 32)),
    Kind("MLP, 4 layers, Adam", lambda: mlp(64, 128, 128, 128, 10), _adam, lambda: _vectors(128, 64)),
    Kind("MLP, 4 wide layers, Adam", lambda: mlp(128, 256, 256, 256, 10), _adam, lambda: _vectors(192, 128)),
    Kind("CNN, 3 convolutions, SGD", lambda: cnn(8), _sgd, lambda: _images(56)),
    Kind("CNN, 3 wide convolutions, SGD", lambda: cnn(16), _sgd, lambda: _images(80)),
    Kind("transformer, 4 blocks, AdamW", lambda: CharTransformer(64, 4, 64), _adamw, lambda: _tokens(32, 64)),
)
