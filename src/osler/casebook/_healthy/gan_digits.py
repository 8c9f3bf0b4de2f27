"""A non-saturating GAN on the digits: two optimizers, and the fake batch detached for the discriminator."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

LATENT = 16


def generator() -> nn.Module:
    return nn.Sequential(
        nn.Linear(LATENT, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.Tanh(),
    )


def discriminator() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(128, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
    )


def main() -> None:
    torch.manual_seed(6)
    torch.set_num_threads(1)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
    g, d = generator(), discriminator()
    g_optimizer = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.5, 0.999))
    d_optimizer = torch.optim.Adam(d.parameters(), lr=5e-4, betas=(0.5, 0.999))
    ones, zeros = torch.full((64, 1), 0.9), torch.zeros(64, 1)

    with torch.no_grad():
        before = (g(torch.randn(512, LATENT)).mean(0) - images.mean(0)).norm().item()
    for step in range(180):
        real = images[torch.randint(len(images), (64,))]
        fake = g(torch.randn(64, LATENT))

        d_optimizer.zero_grad()
        d_loss = F.binary_cross_entropy_with_logits(d(real), ones)
        d_loss = d_loss + F.binary_cross_entropy_with_logits(d(fake.detach()), zeros)
        d_loss.backward()
        d_optimizer.step()

        # this backward also leaves gradients in d; they are cleared at the top of the next round
        g_optimizer.zero_grad()
        g_loss = F.binary_cross_entropy_with_logits(d(fake), torch.ones(64, 1))
        g_loss.backward()
        g_optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: d {d_loss.item():.3f}, g {g_loss.item():.3f}")

    with torch.no_grad():
        samples = g(torch.randn(512, LATENT))
    after = (samples.mean(0) - images.mean(0)).norm().item()
    spread = samples.std(0).mean().item() / images.std(0).mean().item()
    print(f"distance of the mean image {before:.2f} -> {after:.2f}, spread {spread:.2f} of the data's")
    assert after < 0.5 * before and spread > 0.4, (before, after, spread)


if __name__ == "__main__":
    main()
