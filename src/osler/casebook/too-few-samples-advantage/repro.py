"""A policy for offers, learnt with REINFORCE from logged sessions; the rewards are normalised within each session."""

import json
import sys

import torch
from torch import nn

FAULTY = "--faulty" in sys.argv

torch.manual_seed(0)
visits = torch.randint(4, 12, (28,)).tolist()
visits[10] = 1  # a customer who came once
taste = torch.randn(6, 3)

policy = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "visits": -1, "bad_advantages": 0}

for step, count in enumerate(visits):
    customer = torch.randn(count, 6)
    offer = torch.randint(0, 3, (count, 1))
    log_prob = policy(customer).log_softmax(-1).gather(1, offer).squeeze(1)
    reward = (customer @ taste).gather(1, offer).squeeze(1) + 0.1 * torch.randn(count)
    advantage = reward - reward.mean()
    if FAULTY:
        advantage = advantage / (reward.std() + 1e-8)  # fault-here
    elif count > 1:
        advantage = advantage / (reward.std() + 1e-8)
    loss = -(log_prob * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "visits": count, "bad_advantages": int(advantage.isnan().sum())}
    if step % 8 == 0:
        print(f"session {step} visits {count} mean reward {reward.mean().item():.3f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
