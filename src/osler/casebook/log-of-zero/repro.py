"""A small fraud classifier whose binary cross-entropy is written out by hand."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH = 32

torch.manual_seed(0)
X = torch.randn(32 * BATCH, 12)
direction = torch.randn(12)
direction /= direction.norm()
y = (X @ direction > 0).float()
# One customer moves far more money than all the others: a clear case, and the model is sure of it.
X[13 * BATCH + 5], y[13 * BATCH + 5] = 400 * direction, 1.0

model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
evidence = {"first_bad_step": -1, "infinite_logs": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    logit = model(xb).squeeze(1)
    if FAULTY:
        p = torch.sigmoid(logit)  # exactly 1 in float32 from a logit of about 17 on
        log_hit = torch.log(p)
        log_miss = torch.log(1 - p)  # fault-here
    else:
        log_hit, log_miss = F.logsigmoid(logit), F.logsigmoid(-logit)
    loss = -(yb * log_hit + (1 - yb) * log_miss).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "infinite_logs": int(log_miss.detach().isinf().sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
