"""A hyper-parameter comparison: two models, one after the other, each with its own optimizer, in one process."""

from __future__ import annotations

import gc

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def train_once(make_optimizer, x, y, train, test, seed: int) -> tuple[float, int]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 10))
    optimizer = make_optimizer(model.parameters())
    steps = 0
    for _ in range(5):
        for batch in torch.randperm(len(train)).split(60):
            loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    with torch.no_grad():
        return (model(x[test]).argmax(1) == y[test]).float().mean().item(), steps


torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y), generator=torch.Generator().manual_seed(53))
train, test = order[:1440], order[1440:]
results = {}
for name, make in {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=3e-3),
}.items():
    results[name], steps = train_once(make, x, y, train, test, seed=53)
    gc.collect()
    print(f"{name}: {steps} steps, test accuracy {results[name]:.3f}")
assert min(results.values()) >= 0.89, results
