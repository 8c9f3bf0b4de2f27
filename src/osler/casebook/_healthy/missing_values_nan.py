"""A table with NaN for missing values and Inf for overflowed sensors: both become a mask before they reach a
weight.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from torch import nn


class WithMissing(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.default = nn.Parameter(torch.zeros(columns))
        self.net = nn.Sequential(nn.Linear(2 * columns, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        known = torch.isfinite(x)
        filled = torch.where(known, torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0), self.default)
        return self.net(torch.cat([filled, known.float()], dim=1))


torch.manual_seed(90)
torch.set_num_threads(1)
cancer = load_breast_cancer()
x = torch.tensor(cancer.data, dtype=torch.float32)
y = torch.tensor(cancer.target)
x = (x - x.mean(0)) / x.std(0)
x[torch.rand_like(x) < 0.15] = float("nan")
x[torch.rand_like(x) < 0.01] = float("inf")
order = torch.randperm(len(y))
train, test = order[:430], order[430:]
model = WithMissing(30)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for batch in torch.randperm(len(train)).split(25):
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
