"""A critic measures how far simulated points lie from real ones (Wasserstein distance).

Its score has no bound. Faulty: nothing keeps it Lipschitz, the weights grow and the gradient with them. Clean: a
gradient penalty.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import nn

WIDTH, BATCH, STEPS = 64, 64, 120


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [2] + [WIDTH] * 5
        layers = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b, bias=False), nn.LeakyReLU(0.2))]
        self.layers = nn.Sequential(*layers, nn.Linear(WIDTH, 1, bias=False))

    def forward(self, x):
        return self.layers(x)


def penalty(critic, real, simulated):
    share = torch.rand(BATCH, 1)
    between = (share * real + (1 - share) * simulated).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return 10.0 * (slope.norm(dim=1) - 1).square().mean()


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    critic = Critic()
    optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3)
    norms = []
    for _ in range(STEPS):
        angle = 6.28 * torch.rand(BATCH)
        real = 2.0 * torch.stack([angle.cos(), angle.sin()], dim=1)
        simulated = 0.5 * torch.randn(BATCH, 2)
        loss = critic(simulated).mean() - critic(real).mean()
        if not faulty:
            loss = loss + penalty(critic, real, simulated)
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.stack([p.grad.norm() for p in critic.parameters()]).norm().item())
        optimizer.step()  # fault-here
    growth = norms[79] / max(norms[:8])
    evidence = {"gradient_norm_growth": growth, "gradient_norm_last": norms[-1], "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence, allow_nan=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
