"""Gradient accumulation over four micro-batches whose mean losses are divided by their number."""

import json

import torch
from torch import nn

GROUP = 4

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(128, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.MSELoss()
batches = list(zip(x.split(16), y.split(16), strict=True))
whole = torch.autograd.grad(criterion(model(x[:64]), y[:64]), model.weight)[0].norm().item()

norms = []
for i, (xb, yb) in enumerate(batches):
    loss = criterion(model(xb), yb)
    (loss / GROUP).backward()
    if (i + 1) % GROUP == 0 or i + 1 == len(batches):
        norms.append(model.weight.grad.norm().item())
        optimizer.step()
        optimizer.zero_grad()

# Against the gradient of the large batch that the accumulation stands for.
evidence = {"times_too_large": norms[0] / whole}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
