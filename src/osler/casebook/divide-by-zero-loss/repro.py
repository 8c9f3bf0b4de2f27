"""Regression on partly labelled data, gradients accumulated over four micro-batches."""

import json
import sys

import torch
from losses import labelled_mean, labelled_mean_or_zero
from torch import nn

FAULTY = "--faulty" in sys.argv
MICRO, ACCUMULATE, STEPS = 8, 4, 26

torch.manual_seed(0)
X = torch.randn(STEPS * ACCUMULATE * MICRO, 10)
y = torch.tanh(X[:, 0] - X[:, 1]) + 0.1 * torch.randn(len(X))
labelled = (torch.arange(len(X)) % 3 == 0).float()
site = (10 * ACCUMULATE + 2) * MICRO
labelled[site : site + MICRO] = 0  # rows lie in the file by site, and this site has labelled nothing

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mean = labelled_mean if FAULTY else labelled_mean_or_zero
evidence = {"first_bad_step": -1, "labelled_rows": -1, "bad_losses": 0}

batches = list(zip(X.split(MICRO), y.split(MICRO), labelled.split(MICRO), strict=True))
for step in range(STEPS):
    optimizer.zero_grad()
    total = 0.0
    for xb, yb, lb in batches[step * ACCUMULATE : (step + 1) * ACCUMULATE]:
        error = (model(xb).squeeze(1) - yb).square()
        loss = mean(error, lb) / ACCUMULATE
        loss.backward()
        total += loss.item()
        if not loss.isfinite():
            evidence["bad_losses"] += 1
            if evidence["first_bad_step"] < 0:
                evidence.update(first_bad_step=step, labelled_rows=int(lb.sum()))
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {total:.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
