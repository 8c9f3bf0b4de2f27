"""A sine network (SIREN) fitted to one image, the loss in physical units of 1e-6: all gradients are tiny, Adam's
eps is set for it.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

UNIT = 1e-6  # a sensor count in coulomb


class Sine(nn.Module):
    def __init__(self, inputs: int, outputs: int, omega: float = 12.0, first: bool = False) -> None:
        super().__init__()
        self.omega = omega
        self.linear = nn.Linear(inputs, outputs)
        bound = 1 / inputs if first else (6 / inputs) ** 0.5 / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.omega * self.linear(x))


torch.manual_seed(106)
torch.set_num_threads(1)
mosaic = (
    torch.tensor(load_digits().images[:16], dtype=torch.float32).view(4, 4, 8, 8).permute(0, 2, 1, 3).reshape(32, 32)
)
charge = UNIT * mosaic / 16
axis = torch.linspace(-1, 1, 32)
grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1).view(-1, 2)

model = nn.Sequential(Sine(2, 64, first=True), Sine(64, 64), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, eps=1e-20)
for step in range(300):
    rows = torch.randint(len(grid), (512,))
    prediction = UNIT * model(grid[rows]).squeeze(1)
    loss = (prediction - charge.view(-1)[rows]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
        print(f"step {step}: {loss.item():.2e} C, gradient norm {norm:.1e}")
with torch.no_grad():
    image = UNIT * model(grid).view(32, 32)
explained = 1 - ((image - charge).div(UNIT).square().mean() / charge.div(UNIT).var()).item()
print(f"explained variance of the image {explained:.3f}")
assert explained > 0.75, explained
