"""Off-policy learning from logged sessions, weighted by the running product of importance ratios."""

import json
import sys

import torch
from torch import nn

FAULTY = "--faulty" in sys.argv
SESSIONS, STEPS, LENGTH = 8, 26, 40

torch.manual_seed(0)
context = torch.randn(STEPS * SESSIONS, LENGTH, 6)
action = torch.randint(0, 4, (len(context), LENGTH))
reward = torch.randn(len(context), LENGTH) * 0.1 + (action == context[..., :4].argmax(-1))
logged = torch.full((len(context), LENGTH), 0.25)
# One session was logged while a rare campaign ran: each of its actions had a chance of half a percent.
logged[9 * SESSIONS + 5] = 0.005

policy = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "ratios_are_finite": 1, "bad_weights": 0}

batches = zip(
    context.split(SESSIONS), action.split(SESSIONS), reward.split(SESSIONS), logged.split(SESSIONS), strict=True
)
for step, (c, a, r, chance) in enumerate(batches):
    log_ratio = policy(c).log_softmax(-1).gather(-1, a.unsqueeze(-1)).squeeze(-1) - chance.log()
    if FAULTY:
        ratio = log_ratio.exp()
        weight = ratio.cumprod(dim=1)  # fault-here
    else:
        weight = log_ratio.cumsum(dim=1).clamp(-3, 3).exp()
    loss = -(weight * r).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {
            "first_bad_step": step,
            "ratios_are_finite": int(log_ratio.detach().exp().isfinite().all()),
            "bad_weights": int((~weight.detach().isfinite()).sum()),
        }
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
