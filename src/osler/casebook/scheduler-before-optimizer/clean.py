"""Ten epochs with a learning rate that halves each time; the scheduler steps at the end of each."""

import json
import warnings

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR

warnings.simplefilter("ignore")  # torch warns once of the wrong order
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = ExponentialLR(optimizer, gamma=0.5)
rates = []
for _ in range(10):
    for xb, yb in zip(x.split(16), y.split(16), strict=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(xb), yb).backward()
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
    scheduler.step()

evidence = {"first_rate": rates[0], "asked_for": 0.1}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
