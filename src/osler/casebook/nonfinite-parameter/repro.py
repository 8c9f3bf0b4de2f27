"""Training that puts the average of its own snapshots in place now and then; the first time there are none yet."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 30
SNAPSHOTS_FROM, SNAPSHOT_EVERY, AVERAGE_EVERY = 15, 3, 12

torch.manual_seed(0)
X = torch.randn(STEPS * BATCH, 10)
y = X[:, :3].argmax(1)

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = [torch.zeros_like(p) for p in model.parameters()]
count = 0
evidence = {"first_bad_step": -1, "snapshots": -1, "bad_parameters": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    with torch.no_grad():
        if step >= SNAPSHOTS_FROM and step % SNAPSHOT_EVERY == 0:
            for kept, p in zip(total, model.parameters(), strict=True):
                kept += p
            count += 1
        if step and step % AVERAGE_EVERY == 0 and (FAULTY or count):
            for kept, p in zip(total, model.parameters(), strict=True):
                p.copy_(kept / count)
            bad = sum(int((~p.isfinite()).sum()) for p in model.parameters())
            if bad and evidence["first_bad_step"] < 0:
                evidence = {"first_bad_step": step, "snapshots": count, "bad_parameters": bad}
    logits = model(xb)  # fault-here
    loss = F.cross_entropy(logits, yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
