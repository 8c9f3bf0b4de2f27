"""Ten micro-batches in groups of four; the last two never reach the optimizer."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(80, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for i in range(10):  # fault-here
    xb, yb = x[i * 8 : i * 8 + 8], y[i * 8 : i * 8 + 8]
    (nn.functional.mse_loss(model(xb), yb) / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

left = [p.grad for p in model.parameters() if p.grad is not None]
evidence = {"gradients_never_applied": len(left)}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
