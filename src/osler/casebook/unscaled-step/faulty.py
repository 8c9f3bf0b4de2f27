"""A regression with a loss scale; the step uses gradients 1024 times too large."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
start = nn.functional.mse_loss(model(x), y).item()
for _ in range(5):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    optimizer.step()  # fault-here

evidence = {"loss_before": start, "loss_after": loss.item()}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
