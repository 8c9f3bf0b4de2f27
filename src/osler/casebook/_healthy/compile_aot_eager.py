"""Ahead-of-time autograd: forward and backward of the whole model are traced (backend "aot_eager")."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class GatedBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(value * F.silu(gate))


torch.manual_seed(20)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 64), GatedBlock(64), GatedBlock(64), nn.Linear(64, 10))


@torch.compile(backend="aot_eager")
def forward_loss(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(inputs), labels)


optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    for batch in torch.randperm(len(train)).split(48):  # 1440 = 30 · 48: one shape, one graph
        index = train[batch]
        loss = forward_loss(x[index], y[index])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: {loss.item():.4f}")

with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.93, accuracy
