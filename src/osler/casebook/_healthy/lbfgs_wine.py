"""Softmax regression with one hidden layer on the wine data, full batch, L-BFGS with a closure.

At the end the model has converged: the gradient is small because the minimum is near.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)
table, target = load_wine(return_X_y=True)
x = torch.tensor(StandardScaler().fit_transform(table), dtype=torch.float32)
y = torch.tensor(target)
held_out = torch.zeros(len(y), dtype=torch.bool)
held_out[::4] = True

model = nn.Sequential(nn.Linear(13, 12), nn.Tanh(), nn.Linear(12, 3))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=10, line_search_fn="strong_wolfe")


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x[~held_out]), y[~held_out])
    loss = loss + 5e-3 * sum(p.square().sum() for p in model.parameters())
    loss.backward()
    return loss


first = closure().item()
for step in range(90):
    loss = optimizer.step(closure)
with torch.no_grad():
    accuracy = (model(x[held_out]).argmax(1) == y[held_out]).float().mean().item()
norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()
print(
    f"loss {first:.4f} -> {loss.item():.4f}, gradient norm {norm:.1e}, accuracy on the held-out quarter {accuracy:.3f}"
)
assert accuracy >= 0.93 and loss.item() < 0.5 * first, (accuracy, loss.item())
