"""A regression with a loss scale and clipping of the gradients without their scale."""

import json

import torch
from torch import nn

LIMIT = 1.0

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = 10 * x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(20):
    optimizer.zero_grad()
    before = model.weight.detach().clone()
    scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), LIMIT)
    scaler.step(optimizer)
    scaler.update()
    # The gradient that the step has really applied.
    applied = (model.weight.detach() - before).norm().item() / 0.1

evidence = {"applied": applied, "limit": LIMIT}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
