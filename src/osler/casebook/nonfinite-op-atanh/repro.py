"""Behaviour cloning with a tanh-squashed normal policy; one recorded action lies at the very limit."""

import json
import sys

import torch
from torch import nn
from torch.distributions import Normal

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 28


class SquashedPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))

    def log_prob(self, observation, action):
        mean, log_std = self.net(observation).chunk(2, dim=-1)
        if not FAULTY:
            action = action.clamp(-1 + 1e-6, 1 - 1e-6)
        unsquashed = torch.atanh(action)  # fault-here
        normal = Normal(mean, log_std.clamp(-3, 1).exp(), validate_args=False)
        squash = torch.log(1 - action.square() + 1e-6)
        return (normal.log_prob(unsquashed) - squash).sum(-1)


torch.manual_seed(0)
observation = torch.randn(STEPS * BATCH, 8)
action = torch.tanh(0.6 * observation[:, :2] + 0.3 * torch.randn(len(observation), 2))
action[11 * BATCH + 8, 0] = 1.0  # the joystick was pushed to its stop

policy = SquashedPolicy()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "actions_at_limit": 0}

for step, (ob, ab) in enumerate(zip(observation.split(BATCH), action.split(BATCH), strict=True)):
    loss = -policy.log_prob(ob, ab).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "actions_at_limit": int((ab.abs() == 1).sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
