"""Trained until it is sure: zero and one are easy to tell apart, so the sigmoid ends near 0 and 1 and gradients
get tiny.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(60)
torch.set_num_threads(1)
digits = load_digits(n_class=2)
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target, dtype=torch.float32).unsqueeze(1)
train, test = slice(0, 280), slice(280, None)

model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 1), nn.Sigmoid())
criterion = nn.BCELoss()  # clamps log at -100: finite at 0 and 1
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(300):
    rows = torch.randint(280, (40,))
    loss = criterion(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        print(f"step {step}: loss {loss.item():.2e}, gradient norm {norm:.1e}")
with torch.no_grad():
    probability = model(x[test])
accuracy = ((probability > 0.5) == y[test].bool()).float().mean().item()
sure = ((probability < 0.01) | (probability > 0.99)).float().mean().item()
print(f"test accuracy {accuracy:.3f}, share of outputs within 0.01 of a limit {sure:.3f}")
assert accuracy >= 0.97 and sure > 0.5, (accuracy, sure)
