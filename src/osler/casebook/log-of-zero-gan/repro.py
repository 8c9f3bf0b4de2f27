"""A conditional GAN for purchases, trained with the generator loss of the first GAN paper, log(1 - D(G(z)))."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 26

torch.manual_seed(0)
income = torch.randn(STEPS * BATCH, 1)
income[8 * BATCH + 3], income[8 * BATCH + 4] = 250.0, -250.0  # one very rich customer, one deep in debt
spent = torch.cat([income.clamp(-3, 3) * 0.5, income.clamp(-3, 3).square() * 0.1], 1) + 0.2 * torch.randn(
    len(income), 2
)

generator = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(3, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(critic.parameters(), lr=1e-3)
evidence = {"first_bad_step": -1, "infinite_logs": 0}

for step, (c, real) in enumerate(zip(income.split(BATCH), spent.split(BATCH), strict=True)):
    fake = generator(torch.cat([torch.randn(BATCH, 8), c], 1))
    on_real, on_fake = critic(torch.cat([real, c], 1)), critic(torch.cat([fake.detach(), c], 1))
    loss_d = F.softplus(-on_real).mean() + F.softplus(on_fake).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    verdict = critic(torch.cat([fake, c], 1))
    if FAULTY:
        fooled = torch.log(1 - torch.sigmoid(verdict))  # fault-here
    else:
        fooled = -F.softplus(verdict)
    loss_g = fooled.mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if evidence["first_bad_step"] < 0 and not loss_g.isfinite():
        evidence = {"first_bad_step": step, "infinite_logs": int(fooled.detach().isinf().sum())}
    if step % 8 == 0:
        print(f"step {step} critic {loss_d.item():.4f} generator {loss_g.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
