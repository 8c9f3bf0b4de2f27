"""Feature selection by sigmoid gates whose temperature falls: at the end every gate is open or shut, as intended."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from torch import nn


class Gated(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(columns))
        self.temperature = 1.0
        self.net = nn.Sequential(nn.Linear(columns, 24), nn.ReLU(), nn.Linear(24, 2))

    @property
    def gate(self) -> torch.Tensor:
        return torch.sigmoid(self.logit / self.temperature)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x * self.gate)


torch.manual_seed(103)
torch.set_num_threads(1)
cancer = load_breast_cancer()
x = torch.tensor(cancer.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
x = torch.cat([x, torch.randn(len(x), 20)], dim=1)  # twenty columns of noise, to be shut out
y = torch.tensor(cancer.target)
order = torch.randperm(len(y))
train, test = order[:430], order[430:]
model = Gated(50)
optimizer = torch.optim.Adam([{"params": model.net.parameters(), "lr": 3e-3}, {"params": [model.logit], "lr": 3e-2}])
for step in range(240):
    model.temperature = max(0.05, 1.0 - step / 200)
    rows = train[torch.randint(len(train), (64,))]
    loss = F.cross_entropy(model(x[rows]), y[rows]) + 0.01 * model.gate.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(
            f"step {step}: {loss.item():.4f}, temperature {model.temperature:.2f}, gates {model.gate.sum().item():.1f}"
        )
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    real, noise = model.gate[:30].sum().item(), model.gate[30:].sum().item()
print(f"open gates: {real:.1f} of 30 measurements, {noise:.1f} of 20 noise columns; test accuracy {accuracy:.3f}")
assert accuracy >= 0.92 and noise / 20 < real / 30, (accuracy, real, noise)
