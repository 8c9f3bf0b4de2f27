"""A siamese network: photos of the same product should lie close to each other (contrastive loss)."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 28

torch.manual_seed(0)
left = torch.randn(STEPS * BATCH, 16)
same = torch.rand(len(left)) < 0.5
right = torch.where(same[:, None], left + 0.3 * torch.randn(len(left), 16), torch.randn(len(left), 16))
# A seller uploaded one photo twice: a pair of identical inputs, and so of identical embeddings.
twice = 7 * BATCH + 11
right[twice], same[twice] = left[twice], True

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "zero_distances": 0, "loss_is_finite": 1, "bad_gradients": 0}

for step, (a, b, s) in enumerate(zip(left.split(BATCH), right.split(BATCH), same.split(BATCH), strict=True)):
    squared = (model(a) - model(b)).square().sum(1)
    if FAULTY:
        distance = squared.sqrt()  # fault-here
    else:
        distance = (squared + 1e-8).sqrt()
    loss = torch.where(s, distance.square(), F.relu(1 - distance).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    bad = sum(not p.grad.isfinite().all() for p in model.parameters())
    if evidence["first_bad_step"] < 0 and bad:
        evidence = {
            "first_bad_step": step,
            "zero_distances": int((squared.detach() == 0).sum()),
            "loss_is_finite": int(loss.isfinite()),
            "bad_gradients": int(bad),
        }
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
