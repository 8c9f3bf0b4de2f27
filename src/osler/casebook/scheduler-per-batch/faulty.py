"""A decay every 30 epochs, stepped once a batch."""

import json

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

EPOCHS = 60

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
rates = []
for _ in range(EPOCHS):
    for xb, yb in zip(x.split(4), y.split(4), strict=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(xb), yb).backward()
        optimizer.step()
        scheduler.step()  # fault-here
    rates.append(optimizer.param_groups[0]["lr"])

evidence = {"rate_in_epoch_20": rates[20], "asked_for": 0.01}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
