"""A churn classifier read from a table in which one cell is empty."""

import io
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 26


def table():
    """The table as it comes: eight columns and a label, comma-separated, one cell left empty."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(STEPS * BATCH, 8))
    churned = (rows[:, 0] + rows[:, 3] > 0).astype(int)
    lines = [",".join(f"{value:.4f}" for value in row) + f",{label}" for row, label in zip(rows, churned, strict=True)]
    cells = lines[11 * BATCH + 6].split(",")
    cells[5] = ""
    lines[11 * BATCH + 6] = ",".join(cells)
    return "\n".join(lines)


data = np.genfromtxt(io.StringIO(table()), delimiter=",")  # an empty cell becomes NaN
features, label = data[:, :8], data[:, 8]
if not FAULTY:
    features = np.where(np.isnan(features), np.nanmean(features, axis=0), features)

torch.manual_seed(0)
rows = TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(label, dtype=torch.long))
model = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "bad_cells": 0, "column": -1, "sample": -1}

for step, (xb, yb) in enumerate(DataLoader(rows, batch_size=BATCH)):
    logits = model(xb)  # fault-here
    loss = F.cross_entropy(logits, yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        sample, column = (~xb.isfinite()).nonzero()[0].tolist()
        evidence = {
            "first_bad_step": step,
            "bad_cells": int((~xb.isfinite()).sum()),
            "column": column,
            "sample": sample,
        }
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
