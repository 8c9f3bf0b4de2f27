"""Regression on the diabetes data with the targets in their own unit (25 to 346): losses of 1e4, gradients of 1e2,
sane steps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(43)
torch.set_num_threads(1)
table, target = load_diabetes(return_X_y=True)
x = torch.tensor(table, dtype=torch.float32) * 21  # unit variance: scikit-learn ships columns of norm 1
y = torch.tensor(target, dtype=torch.float32).unsqueeze(1)
order = torch.randperm(len(y))
train, test = order[:350], order[350:]

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
with torch.no_grad():
    model[-1].bias.fill_(y[train].mean())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
for epoch in range(24):
    for batch in torch.randperm(len(train)).split(35):
        loss = F.mse_loss(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
        optimizer.step()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: loss {loss.item():.0f}, gradient norm {norm:.0f}")

with torch.no_grad():
    error = F.mse_loss(model(x[test]), y[test]).item()
base = F.mse_loss(y[train].mean().expand_as(y[test]), y[test]).item()
print(f"R^2 on the test rows {1 - error / base:.3f}")
assert 1 - error / base > 0.35, error
