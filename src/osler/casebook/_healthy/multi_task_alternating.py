"""One trunk, two heads that take turns, and an auxiliary reconstruction loss of weight 1e-6.

On every step one head gets no gradient; the auxiliary head's gradients are a million times smaller than the others'
and Adam brings its steps to the usual size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class MultiTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU())
        self.digit = nn.Linear(64, 10)
        self.ink = nn.Linear(64, 1)
        self.pixels = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor, task: str) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.trunk(x)
        return getattr(self, task)(h), self.pixels(h)


torch.manual_seed(24)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
ink = x.mean(1, keepdim=True)
ink = (ink - ink.mean()) / ink.std()
order = torch.randperm(len(y))
train, test = order[:1400], order[1400:]

model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
step = 0
for epoch in range(10):
    for batch in torch.randperm(len(train)).split(50):
        index = train[batch]
        task = ("digit", "ink")[step % 2]
        out, pixels = model(x[index], task)
        main_loss = F.cross_entropy(out, y[index]) if task == "digit" else F.mse_loss(out, ink[index])
        loss = main_loss + 1e-6 * F.mse_loss(pixels, x[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(f"epoch {epoch}: last task {task}, loss {main_loss.item():.4f}")

with torch.no_grad():
    accuracy = (model(x[test], "digit")[0].argmax(1) == y[test]).float().mean().item()
    residual = F.mse_loss(model(x[test], "ink")[0], ink[test]).item()
    pixel_error = F.mse_loss(model(x[test], "ink")[1], x[test]).item()
print(f"digit accuracy {accuracy:.3f}, unexplained ink variance {residual:.3f}, pixel error {pixel_error:.4f}")
assert accuracy >= 0.9 and residual < 0.35 and pixel_error < 0.1, (accuracy, residual, pixel_error)
