"""Masked sequence regression and set attention in which every dangerous spot is guarded the right way.

log(0), sqrt(0), 0/0 of an empty mask, and rows whose attention mask is full all occur in the data.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn


class SetAttention(nn.Module):
    """Attention over a person's known measurements; nothing may be known (then the output is 0)."""

    def __init__(self, fields: int, width: int = 24) -> None:
        super().__init__()
        self.name = nn.Parameter(torch.randn(fields, width) * 0.3)
        self.value = nn.Linear(1, width)
        self.query = nn.Parameter(torch.randn(width) * 0.3)
        self.head = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 2))

    def forward(self, x: torch.Tensor, known: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = torch.tanh(self.value(x.unsqueeze(-1)) + self.name)
        score = tokens @ self.query / math.sqrt(tokens.shape[-1])
        empty = ~known.any(1, keepdim=True)
        # a row of only -inf would give NaN in softmax; let it see everything and blank it out afterwards
        score = score.masked_fill(~(known | empty), float("-inf"))
        weight = score.softmax(-1).masked_fill(empty, 0.0)
        pooled = (weight.unsqueeze(-1) * tokens).sum(1) * math.sqrt(x.shape[1])
        mean, raw = self.head(pooled).unbind(-1)
        return mean, F.softplus(raw) + 1e-3


def safe_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Euclidean distance with gradient 0 where both are equal: `where` on both sides of the square root."""
    squared = (a - b).square().sum(-1)
    positive = squared > 0
    return torch.where(positive, torch.where(positive, squared, torch.ones_like(squared)).sqrt(), 0.0)


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp_min(1)


torch.manual_seed(51)
torch.set_num_threads(1)
table, target = load_diabetes(return_X_y=True)
x = torch.tensor(table, dtype=torch.float32) * 21
y = torch.tensor(target, dtype=torch.float32)
y = (y - y.mean()) / y.std()
order = torch.randperm(len(y))
train, test = order[:350], order[350:]
model = SetAttention(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(250):
    rows = train[torch.randint(len(train), (50,))]
    known = torch.rand(50, x.shape[1]) < 0.9
    known[:3] = False  # nothing known
    labels = y[rows].clone()
    labels[5:10] = float("nan")  # the outcome is missing
    labelled = ~labels.isnan()
    if step % 25 == 0:
        labelled[:] = False  # a batch without a single label
    mean, sigma = model(x[rows], known)
    residual = torch.where(labelled, mean - torch.where(labelled, labels, 0.0), 0.0)
    nll = masked_mean(0.5 * (residual / sigma).square() + sigma.log(), labelled)
    spread = sigma / sigma.sum()
    entropy = -(spread * spread.clamp_min(1e-8).log()).sum()
    anchors = torch.cat([model.name, model.name[:1]])  # the last pair is equal: distance 0
    apart = safe_distance(anchors, anchors.roll(1, 0)).mean()
    loss = nll - 1e-3 * entropy - 1e-3 * apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 1:
        print(f"step {step}: {loss.item():.4f}")

with torch.no_grad():
    mean, _ = model(x[test], torch.ones(len(test), x.shape[1], dtype=torch.bool))
    r2 = 1 - (F.mse_loss(mean, y[test]) / y[test].var()).item()
print(f"R^2 on the test rows {r2:.3f}")
assert r2 > 0.25, r2
