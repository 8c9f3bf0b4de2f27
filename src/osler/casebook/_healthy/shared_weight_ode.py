"""A neural ODE by Runge-Kutta: one small network is called 32 times in a forward pass, its weights are used in
every call.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class Dynamics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        return self.net(state)


def integrate(field, state: torch.Tensor, steps: int = 8, dt: float = 0.1) -> torch.Tensor:
    path = [state]
    for _ in range(steps):
        k1 = field(state)
        k2 = field(state + 0.5 * dt * k1)
        k3 = field(state + 0.5 * dt * k2)
        k4 = field(state + dt * k3)
        state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return torch.stack(path)


def pendulum(state: torch.Tensor) -> torch.Tensor:
    angle, speed = state.unbind(-1)
    return torch.stack([speed, -4 * torch.sin(angle) - 0.2 * speed], dim=-1)


torch.manual_seed(93)
torch.set_num_threads(1)
model = Dynamics()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(150):
    start = (torch.rand(48, 2) - 0.5) * torch.tensor([math.pi, 4.0])
    with torch.no_grad():
        truth = integrate(pendulum, start)
    loss = F.mse_loss(integrate(model, start), truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: {loss.item():.5f}")
with torch.no_grad():
    start = (torch.rand(200, 2) - 0.5) * torch.tensor([math.pi, 4.0])
    truth = integrate(pendulum, start)
    relative = (F.mse_loss(integrate(model, start), truth) / truth.var()).item()
print(f"unexplained variance of the paths {relative:.4f}")
assert relative < 0.03, relative
