"""A classifier with dropout, evaluated in train mode."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, x_test = torch.randn(128, 8), torch.randn(64, 8)
y, y_test = (x[:, 0] > 0).long(), (x_test[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model.train()
for _ in range(50):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


@torch.no_grad()
def evaluate(model, batches):
    total = 0.0
    for xb, yb in batches:  # fault-here
        total += nn.functional.cross_entropy(model(xb), yb).item()
    return total


test_batches = list(zip(x_test.split(16), y_test.split(16), strict=True))
first, second = evaluate(model, test_batches), evaluate(model, test_batches)
evidence = {"difference_of_two_evaluations": abs(first - second)}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
