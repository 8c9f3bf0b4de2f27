"""Five networks in a plain list, each on its own bootstrap sample, trained by one optimizer over all their
parameters.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(105)
torch.set_num_threads(1)
table, target = load_diabetes(return_X_y=True)
x = torch.tensor(table, dtype=torch.float32) * 21
y = torch.tensor(target, dtype=torch.float32)
y = (y - y.mean()) / y.std()
order = torch.randperm(len(y))
train, test = order[:350], order[350:]

members = [nn.Sequential(nn.Linear(10, 16), nn.Softplus(), nn.Linear(16, 2)) for _ in range(5)]
samples = [train[torch.randint(len(train), (len(train),))] for _ in members]
optimizer = torch.optim.Adam(itertools.chain.from_iterable(m.parameters() for m in members), lr=4e-3, weight_decay=1e-3)
for step in range(200):
    optimizer.zero_grad()
    total = 0.0
    for member, rows in zip(members, samples):
        batch = rows[torch.randint(len(rows), (50,))]
        mean, log_variance = member(x[batch]).unbind(1)
        loss = F.gaussian_nll_loss(mean, y[batch], log_variance.clamp(-6, 4).exp())
        loss.backward()
        total += loss.item()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: {total / len(members):.4f}")
with torch.no_grad():
    outputs = torch.stack([member(x[test]) for member in members])
mean, spread = outputs[..., 0].mean(0), outputs[..., 0].std(0)
r2 = 1 - (F.mse_loss(mean, y[test]) / y[test].var()).item()
print(f"R^2 of the ensemble {r2:.3f}, disagreement of its members {spread.mean().item():.3f}")
assert r2 > 0.25, r2
