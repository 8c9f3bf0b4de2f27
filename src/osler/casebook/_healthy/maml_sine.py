"""MAML on sine waves: an inner step through create_graph, weights handed over as a dictionary, an outer Adam."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

INNER_RATE = 0.05


def task() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    amplitude, phase = 0.5 + 1.5 * torch.rand(()), math.pi * torch.rand(())
    x = 6 * torch.rand(20, 1) - 3
    y = amplitude * torch.sin(x + phase)
    return x[:10], y[:10], x[10:], y[10:]


def adapt(net: nn.Module, x: torch.Tensor, y: torch.Tensor, create_graph: bool) -> dict[str, torch.Tensor]:
    weights = dict(net.named_parameters())
    for _ in range(2):
        loss = F.mse_loss(functional_call(net, weights, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(weights.values()), create_graph=create_graph)
        weights = {k: w - INNER_RATE * g for (k, w), g in zip(weights.items(), grads)}
    return weights


def evaluate(net: nn.Module) -> tuple[float, float]:
    torch.manual_seed(99)
    before = after = 0.0
    for _ in range(40):
        x, y, xq, yq = task()
        weights = adapt(net, x, y, create_graph=False)
        with torch.no_grad():
            before += F.mse_loss(net(xq), yq).item() / 40
            after += F.mse_loss(functional_call(net, weights, (xq,)), yq).item() / 40
    return before, after


def main() -> None:
    torch.manual_seed(83)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    for step in range(160):
        losses = []
        for _ in range(4):
            x, y, xq, yq = task()
            weights = adapt(net, x, y, create_graph=True)
            losses.append(F.mse_loss(functional_call(net, weights, (xq,)), yq))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.4f}")
    before, after = evaluate(net)
    print(f"error on new waves before adapting {before:.3f}, after two steps {after:.3f}")
    assert after < 0.7 * before, (before, after)


if __name__ == "__main__":
    main()
