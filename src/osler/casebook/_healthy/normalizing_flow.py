"""RealNVP on five measurements of the breast cancer data; each coupling starts as the identity (last layer 0)."""

from __future__ import annotations

import math

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn


class Coupling(nn.Module):
    def __init__(self, mask: torch.Tensor, width: int = 32) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(nn.Linear(len(mask), width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.out = nn.Linear(width, 2 * len(mask))
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        log_scale, shift = self.out(self.net(x * self.mask)).chunk(2, dim=1)
        log_scale = torch.tanh(log_scale) * (1 - self.mask)
        return x * self.mask + (1 - self.mask) * (x * log_scale.exp() + shift), log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, dimension: int, layers: int = 6) -> None:
        super().__init__()
        masks = [((torch.arange(dimension) + i) % dimension < dimension / 2).float() for i in range(layers)]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        log_det = x.new_zeros(len(x))
        for layer in self.layers:
            x, contribution = layer(x)
            log_det = log_det + contribution
        return log_det - 0.5 * (x.square() + math.log(2 * math.pi)).sum(1)


torch.manual_seed(41)
torch.set_num_threads(1)
table = torch.tensor(load_breast_cancer().data, dtype=torch.float32)[:, [0, 1, 4, 6, 7]]
table = (table - table.mean(0)) / table.std(0)
table = table[torch.randperm(len(table))]
train, test = table[:430], table[430:]
flow = Flow(5)
optimizer = torch.optim.Adam(flow.parameters(), lr=3e-3)
with torch.no_grad():
    start = flow.log_prob(test).mean().item()
for step in range(150):
    batch = train[torch.randint(len(train), (64,))]
    batch = batch + 0.05 * torch.randn_like(batch)
    loss = -flow.log_prob(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: {loss.item():.3f} nats")
with torch.no_grad():
    end = flow.log_prob(test).mean().item()
print(f"log-likelihood of the test data {start:.3f} -> {end:.3f}")
assert end > start + 0.5, (start, end)
