"""Gradual unfreezing (ULMFiT): layers join the training one by one through add_param_group, the last layer first."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> float:
    for batch in torch.randperm(len(y)).split(25):
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(62)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
source, target = y < 5, y >= 5

stages = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])
body = nn.Sequential(stages[0], nn.ReLU(), stages[1], nn.ReLU())
pretrain = nn.Sequential(body, nn.Linear(64, 5))
optimizer = torch.optim.Adam(pretrain.parameters(), lr=2e-3)
for _ in range(2):
    print(f"source loss {epoch(pretrain, optimizer, x[source], y[source]):.4f}")

body.requires_grad_(False)
head = nn.Linear(64, 5)
model = nn.Sequential(body, head)
xs, ys = x[target], y[target] - 5
x_train, y_train, x_test, y_test = xs[:700], ys[:700], xs[700:], ys[700:]
optimizer = torch.optim.Adam(head.parameters(), lr=4e-3)
for stage, rate in ((None, None), (stages[1], 2e-3), (stages[0], 1e-3)):
    if stage is not None:
        stage.requires_grad_(True)
        optimizer.add_param_group({"params": stage.parameters(), "lr": rate})
    for _ in range(3):
        loss = epoch(model, optimizer, x_train, y_train)
    print(f"{len(optimizer.param_groups)} groups, target loss {loss:.4f}")
with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
print(f"test accuracy on 5-9 {accuracy:.3f}")
assert accuracy >= 0.8, accuracy
