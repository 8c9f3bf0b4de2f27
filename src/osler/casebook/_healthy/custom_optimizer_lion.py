"""An own optimizer class (Lion, Chen et al. 2023): sign updates of one size for every weight, whatever its
gradient.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(momentum.lerp(p.grad, 1 - b1).sign_(), alpha=-group["lr"])
                momentum.lerp_(p.grad, 1 - b2)
        return loss


torch.manual_seed(85)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))
optimizer = Lion(model.parameters(), lr=1e-3, weight_decay=0.1)
for epoch in range(5):
    for batch in torch.randperm(len(train)).split(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
