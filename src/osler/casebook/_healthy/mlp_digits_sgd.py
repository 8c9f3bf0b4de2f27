"""A plain ReLU network trained with SGD and momentum.

A fifth of the pixels at the image border is 0 in nearly every digit, so the matching columns of the first weight
matrix get a gradient of exactly 0. The other columns learn.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)

images, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels))
x = (torch.tensor(images, dtype=torch.float32) / 16)[order]
y = torch.tensor(labels)[order]
x_train, y_train, x_test, y_test = x[:1437], y[:1437], x[1437:], y[1437:]

model = nn.Sequential(
    nn.Linear(64, 128),
    nn.ReLU(),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)

for epoch in range(9):
    for batch in torch.randperm(len(x_train)).split(48):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
print(f"loss {loss.item():.4f}, test accuracy {accuracy:.3f}")
assert accuracy >= 0.92, accuracy
