"""A network with binary weights: sign() forward, identity backward (BinaryConnect), real weights clipped after
each step.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight):
        return torch.where(weight >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        return grad


class BinaryLinear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, Sign.apply(self.weight), self.bias) / self.in_features**0.5


torch.manual_seed(67)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(
    BinaryLinear(64, 128), nn.BatchNorm1d(128), nn.Hardtanh(), BinaryLinear(128, 64), nn.BatchNorm1d(64), nn.Hardtanh(),
    nn.Linear(64, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for batch in torch.randperm(len(train)).split(48):
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, BinaryLinear):
                    layer.weight.clamp_(-1, 1)
    print(f"epoch {epoch}: {loss.item():.4f}")
model.eval()
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy with binary weights {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
