"""A deep residual network whose branches start at 0 (Goyal et al. 2017; ReZero).

On the first step everything inside a branch but its last scale gets a gradient of exactly 0.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
        )
        nn.init.zeros_(self.branch[-1].weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.branch(x))


torch.manual_seed(38)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), *(ResidualBlock(48) for _ in range(6)), nn.Linear(48, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
zero_at_start = None
for epoch in range(6):
    model.train()
    for batch in torch.randperm(len(train)).split(60):
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        if zero_at_start is None:
            zero_at_start = sum(bool((p.grad == 0).all()) for p in model.parameters())
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
model.eval()
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}; parameters with gradient 0 on the first step: {zero_at_start}")
assert accuracy >= 0.92 and zero_at_start > 0, (accuracy, zero_at_start)
