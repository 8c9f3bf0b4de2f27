"""A regression with one wild sample and clipping where it counts."""

import json

import torch
from torch import nn

LIMIT = 1.0

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 1)
x[5] *= 50
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
norms = []
optimizer.register_step_pre_hook(lambda *_: norms.append(model.weight.grad.norm().item()))
for _ in range(10):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
    optimizer.step()

evidence = {"largest_applied": max(norms), "limit": LIMIT}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
