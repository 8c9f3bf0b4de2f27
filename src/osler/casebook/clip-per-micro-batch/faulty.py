"""Gradient accumulation over eight micro-batches, clipped with every micro-batch."""

import json

import torch
from torch import nn

GROUP, LIMIT = 8, 0.1

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1) + 3 * torch.arange(256).reshape(256, 1) / 256
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = list(zip(x.split(8), y.split(8), strict=True))

# What the whole large batch would give: its gradient, clipped once.
whole = torch.autograd.grad(nn.functional.mse_loss(model(x[: 8 * GROUP]), y[: 8 * GROUP]), tuple(model.parameters()))
wanted = torch.cat([g.flatten() for g in whole])
wanted *= min(1.0, LIMIT / wanted.norm().item())

applied = []
for i, (xb, yb) in enumerate(batches):
    (nn.functional.mse_loss(model(xb), yb) / GROUP).backward()
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)  # fault-here
    if (i + 1) % GROUP == 0 or i + 1 == len(batches):
        applied.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        optimizer.step()
        optimizer.zero_grad()

evidence = {"off_by": ((applied[0] - wanted).norm() / wanted.norm()).item()}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
