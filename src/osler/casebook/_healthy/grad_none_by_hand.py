"""Gradients set to None by hand, no zero_grad anywhere; evaluation after every epoch with best-weights
bookkeeping.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(35)
torch.set_num_threads(1)
wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
order = torch.randperm(len(y))
train, test = order[:130], order[130:]
x = (x - x[train].mean(0)) / x[train].std(0)

model = nn.Sequential(nn.Linear(13, 24), nn.Mish(), nn.Linear(24, 24), nn.Mish(), nn.Linear(24, 3))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
best, best_state = 0.0, None
for epoch in range(18):
    model.train()
    for batch in torch.randperm(len(train)).split(16):
        for parameter in model.parameters():
            parameter.grad = None
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    if accuracy > best:
        best, best_state = accuracy, copy.deepcopy(model.state_dict())
        print(f"epoch {epoch}: new best {best:.3f}")

model.load_state_dict(best_state)
print(f"best accuracy {best:.3f}, last loss {loss.item():.4f}")
assert best >= 0.93, best
