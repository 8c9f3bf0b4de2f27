"""A critic with a gradient penalty (WGAN-GP) that estimates how far two samples of partly measured rows are apart."""

import json
import sys

import torch
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS, WIDTH = 32, 28, 12

torch.manual_seed(0)
old = torch.randn(STEPS * BATCH, WIDTH)
new = torch.randn(STEPS * BATCH, WIDTH) * 1.2 + 0.3
measured = (torch.rand(STEPS * BATCH, WIDTH) < 0.8).float()
measured[9 * BATCH + 20] = 0  # a row in which nothing was measured: the critic cannot depend on it

critic = nn.Sequential(nn.Linear(WIDTH, 48), nn.Softplus(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
evidence = {"first_bad_step": -1, "zero_slopes": 0, "loss_is_finite": 1, "bad_gradients": 0}

for step, (a, b, m) in enumerate(zip(old.split(BATCH), new.split(BATCH), measured.split(BATCH), strict=True)):
    share = torch.rand(BATCH, 1)
    between = (share * a + (1 - share) * b).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between * m).sum(), between, create_graph=True)
    squared = slope.square().sum(1)
    if FAULTY:
        length = squared.sqrt()  # fault-here
    else:
        length = (squared + 1e-12).sqrt()
    penalty = (length - 1).square().mean()
    loss = critic(a * m).mean() - critic(b * m).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    bad = sum(p.grad is not None and not p.grad.isfinite().all() for p in critic.parameters())
    if evidence["first_bad_step"] < 0 and bad:
        evidence = {
            "first_bad_step": step,
            "zero_slopes": int((squared.detach() == 0).sum()),
            "loss_is_finite": int(loss.isfinite()),
            "bad_gradients": int(bad),
        }
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
