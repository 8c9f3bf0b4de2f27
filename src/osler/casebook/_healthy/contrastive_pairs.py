"""CLIP's loss on halves of digits: two towers, a learnt temperature that is a single number, targets by position."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.top = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 24))
        self.bottom = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 24))
        self.log_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, top: torch.Tensor, bottom: torch.Tensor) -> torch.Tensor:
        a, b = F.normalize(self.top(top), dim=1), F.normalize(self.bottom(bottom), dim=1)
        return self.log_scale.clamp(max=math.log(100)).exp() * a @ b.T


torch.manual_seed(65)
torch.set_num_threads(1)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
x = x[torch.randperm(len(x))]
train, test = x[:1600], x[1600:1664]
model = TwoTowers()
optimizer = torch.optim.AdamW(
    [
        {"params": [*model.top.parameters(), *model.bottom.parameters()], "weight_decay": 1e-2},
        {"params": [model.log_scale], "weight_decay": 0.0, "lr": 1e-2},
    ],
    lr=2e-3,
)


def symmetric_loss(logits: torch.Tensor) -> torch.Tensor:
    labels = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels))


for epoch in range(9):
    for batch in torch.randperm(len(train)).split(64):
        loss = symmetric_loss(model(train[batch, :32], train[batch, 32:]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}, scale {model.log_scale.exp().item():.2f}")
with torch.no_grad():
    logits = model(test[:, :32], test[:, 32:])
    top5 = (logits.topk(5, dim=1).indices == torch.arange(64).unsqueeze(1)).any(1).float().mean().item()
print(f"the right lower half is among the best five of 64: {top5:.3f} (chance {5 / 64:.3f})")
assert top5 > 0.6, top5
