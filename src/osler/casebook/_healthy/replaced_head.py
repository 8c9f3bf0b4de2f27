"""The head is replaced in the middle of the script, and the optimizer is built anew after it, as it should be."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Net(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 48), nn.ReLU())
        self.head = nn.Linear(48, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))

    @torch.no_grad()
    def widen(self, classes: int) -> None:
        """More classes: the rows already learnt are kept."""
        old, self.head = self.head, nn.Linear(48, classes)
        self.head.weight[: old.out_features] = old.weight
        self.head.bias[: old.out_features] = old.bias


def run(net: Net, x: torch.Tensor, y: torch.Tensor, epochs: int) -> float:
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(101)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
x, y = x[order], y[order]
x_train, y_train, x_test, y_test = x[:1440], y[:1440], x[1440:], y[1440:]
net = Net(5)
few = y_train < 5
print(f"five classes: {run(net, x_train[few], y_train[few], 4):.4f}")
net.widen(10)
net.to(torch.float64).to(torch.float32)  # keeps the Parameter objects
print(f"ten classes: {run(net, x_train, y_train, 4):.4f}")
with torch.no_grad():
    accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
