"""No optimizer at all: raw tensors, an own forward pass and `p -= lr * p.grad` under no_grad."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(46)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]

w1 = (torch.randn(64, 100) * (2 / 64) ** 0.5).requires_grad_()
b1 = torch.zeros(100, requires_grad=True)
w2 = (torch.randn(100, 10) * (1 / 100) ** 0.5).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)
parameters = [w1, b1, w2, b2]


def forward(inputs: torch.Tensor) -> torch.Tensor:
    return torch.relu(inputs @ w1 + b1) @ w2 + b2


rate = 0.3
for epoch in range(8):
    for batch in torch.randperm(len(train)).split(60):
        loss = F.cross_entropy(forward(x[train[batch]]), y[train[batch]])
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                p -= rate * p.grad
                p.grad.zero_()
    rate *= 0.9
    print(f"epoch {epoch}: {loss.item():.4f}")

with torch.no_grad():
    accuracy = (forward(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
