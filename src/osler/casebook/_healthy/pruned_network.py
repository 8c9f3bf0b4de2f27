"""Magnitude pruning of 70 % and fine-tuning: masked weights are 0, their gradients are 0, the rest goes on
learning.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.utils import prune


def run(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int, lr: float) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(60):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(95)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
print(f"dense: {run(model, x[train], y[train], 4, 3e-3):.4f}")
linears = [(m, "weight") for m in model if isinstance(m, nn.Linear)]
prune.global_unstructured(linears, pruning_method=prune.L1Unstructured, amount=0.7)
print(f"pruned: {run(model, x[train], y[train], 4, 1e-3):.4f}")
for module, name in linears:
    prune.remove(module, name)
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
sparsity = sum(int((m.weight == 0).sum()) for m, _ in linears) / sum(m.weight.numel() for m, _ in linears)
print(f"sparsity {sparsity:.3f}, test accuracy {accuracy:.3f}")
assert accuracy >= 0.92 and abs(sparsity - 0.7) < 0.01, (accuracy, sparsity)
