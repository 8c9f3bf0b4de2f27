"""Parametrised weights: spectral norm on the body, weight norm on the head. The weight itself is computed, not
learnt.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

torch.manual_seed(40)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]

model = nn.Sequential(
    spectral_norm(nn.Linear(64, 96)),
    nn.ReLU(),
    orthogonal(nn.Linear(96, 48)),
    nn.ReLU(),
    weight_norm(nn.Linear(48, 10)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for batch in torch.randperm(len(train)).split(60):
        logits = 4.0 * model(x[train[batch]])  # a temperature, since the body is 1-Lipschitz
        loss = F.cross_entropy(logits, y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")

model.eval()
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    sigma = torch.linalg.matrix_norm(model[0].weight, 2).item()
print(f"test accuracy {accuracy:.3f}, largest singular value of the first layer {sigma:.3f}")
assert accuracy >= 0.92 and 0.8 < sigma < 1.2, (accuracy, sigma)
