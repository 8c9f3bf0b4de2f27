"""Wasserstein GAN with gradient penalty: three critic steps a generator step, double backward in each."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

LATENT, BATCH, PENALTY = 16, 64, 10.0


def gradient_penalty(critic: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


torch.manual_seed(7)
torch.set_num_threads(1)
images = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
generator = nn.Sequential(nn.Linear(LATENT, 128), nn.LayerNorm(128), nn.SiLU(), nn.Linear(128, 64), nn.Tanh())
critic = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64), nn.SiLU(), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))

estimates = []
for step in range(100):
    for parameter in critic.parameters():
        parameter.requires_grad_(True)
    for _ in range(3):
        real = images[torch.randint(len(images), (BATCH,))]
        with torch.no_grad():
            fake = generator(torch.randn(BATCH, LATENT))
        wasserstein = critic(real).mean() - critic(fake).mean()
        loss = -wasserstein + PENALTY * gradient_penalty(critic, real, fake)
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
    estimates.append(wasserstein.item())

    # the critic only passes gradients on while the generator learns
    for parameter in critic.parameters():
        parameter.requires_grad_(False)
    opt_g.zero_grad()
    (-critic(generator(torch.randn(BATCH, LATENT))).mean()).backward()
    opt_g.step()

peak, end = max(estimates), sum(estimates[-10:]) / 10
print(f"Wasserstein estimate: peak {peak:.3f}, end {end:.3f}")
assert 0 < end < 0.75 * peak, (peak, end)
