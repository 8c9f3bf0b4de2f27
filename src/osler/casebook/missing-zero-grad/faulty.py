"""A linear regression in which every step applies the gradients of all before it."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(16):  # fault-here
    xb, yb = x[step * 16 : step * 16 + 16], y[step * 16 : step * 16 + 16]
    loss = nn.functional.mse_loss(model(xb), yb)
    own = torch.autograd.grad(loss, model.weight, retain_graph=True)[0]
    loss.backward()
    applied = model.weight.grad.norm().item()
    optimizer.step()

# How much larger the gradient of the last step is than that of its own batch.
evidence = {"times_too_large": applied / own.norm().item()}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
