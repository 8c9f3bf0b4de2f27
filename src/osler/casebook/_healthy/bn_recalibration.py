"""After training, BatchNorm statistics are estimated anew: train mode under no_grad, forward passes without a
backward.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


@torch.no_grad()
def recalibrate(model: nn.Module, x: torch.Tensor) -> None:
    layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # cumulative average
    model.train()
    for batch in x.split(100):
        model(batch)
    model.eval()


torch.manual_seed(70)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(
    nn.Linear(64, 96),
    nn.BatchNorm1d(96),
    nn.ReLU(),
    nn.Linear(96, 48),
    nn.BatchNorm1d(48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    model.train()
    for batch in torch.randperm(len(train)).split(60):
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    recalibrate(model, x[train])
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, test accuracy {accuracy:.3f}")
assert accuracy >= 0.94, accuracy
