"""A physics-informed network in float64: u'' + 4 u = 0, u(0) = 1, u'(0) = 0, solved through second derivatives."""

from __future__ import annotations

import torch
from torch import nn


def derivative(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    (dy,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    return dy


def main() -> None:
    torch.manual_seed(42)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def solution(t: torch.Tensor) -> torch.Tensor:
        # the initial conditions hold by construction
        return 1 + t**2 * net(t)

    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.993)
    for step in range(380):
        t = (2 * torch.rand(64, 1)).requires_grad_()
        u = solution(t)
        residual = derivative(derivative(u, t), t) + 4 * u
        loss = residual.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 60 == 0:
            print(f"step {step}: residual {loss.item():.3e}")
    t = torch.linspace(0, 2, 50).unsqueeze(1)
    with torch.no_grad():
        error = (solution(t) - torch.cos(2 * t)).abs().max().item()
    print(f"largest error against cos(2t): {error:.4f}")
    assert error < 0.1, error


if __name__ == "__main__":
    main()
