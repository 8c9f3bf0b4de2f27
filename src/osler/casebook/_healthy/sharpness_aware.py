"""Sharpness-aware minimisation: two backward passes a step, weights moved uphill in place and back in between."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

RHO = 0.05


@torch.no_grad()
def climb(parameters: list[nn.Parameter]) -> list[torch.Tensor]:
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
    steps = [RHO * p.grad / (norm + 1e-12) for p in parameters]
    for p, e in zip(parameters, steps):
        p.add_(e)
    return steps


@torch.no_grad()
def descend(parameters: list[nn.Parameter], steps: list[torch.Tensor]) -> None:
    for p, e in zip(parameters, steps):
        p.sub_(e)


torch.manual_seed(98)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
for epoch in range(5):
    for batch in torch.randperm(len(train)).split(60):
        inputs, labels = x[train[batch]], y[train[batch]]
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        steps = climb(parameters)
        model.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        descend(parameters, steps)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: {loss.item():.4f}")
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
