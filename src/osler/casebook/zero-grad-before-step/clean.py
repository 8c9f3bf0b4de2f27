"""A linear regression whose gradients are cleared before each backward."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = model.weight.detach().clone()
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()

evidence = {"moved": (model.weight.detach() - start).norm().item(), "loss": loss.item()}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
