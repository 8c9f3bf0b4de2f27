"""Warm restarts of an inverse-square-root schedule; after a restart its counter begins at 0."""

import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS, RESTART = 32, 28, 12

torch.manual_seed(0)
X = torch.randn(STEPS * BATCH, 10)
y = X[:, :3].argmax(1)

model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
evidence = {"first_bad_step": -1, "gradients_before_were_finite": 1, "bad_parameters": 0}

since = 1
for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    if step == RESTART:
        since = 0 if FAULTY else 1
    with np.errstate(divide="ignore"):
        optimizer.param_groups[0]["lr"] = float(0.1 * np.float64(since) ** -0.5)
    since += 1
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    finite = all(p.grad.isfinite().all() for p in model.parameters())
    optimizer.step()  # fault-here
    bad = sum(int((~p.detach().isfinite()).sum()) for p in model.parameters())
    if bad and evidence["first_bad_step"] < 0:
        evidence = {"first_bad_step": step, "gradients_before_were_finite": int(finite), "bad_parameters": bad}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
