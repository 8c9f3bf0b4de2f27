"""A regression of the logarithm of a price; one item was given away for nothing."""

import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 28

rng = np.random.default_rng(0)
features = rng.normal(size=(STEPS * BATCH, 9))
price = np.round(np.exp(1 + 0.5 * features[:, 0] - 0.3 * features[:, 1]), 2)
price[10 * BATCH + 9] = 0.0
with np.errstate(divide="ignore"):
    target = np.log(price) if FAULTY else np.log1p(price)

torch.manual_seed(0)
X = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(target, dtype=torch.float32)
model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "bad_targets": 0, "bad_predictions": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    predicted = model(xb).squeeze(1)
    loss = F.mse_loss(predicted, yb)  # fault-here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {
            "first_bad_step": step,
            "bad_targets": int((~yb.isfinite()).sum()),
            "bad_predictions": int((~predicted.detach().isfinite()).sum()),
        }
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
