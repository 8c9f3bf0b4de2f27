"""A classifier that standardises its hidden features over the batch; the loader's last batch holds one sample."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULTY = "--faulty" in sys.argv


class Standardise(nn.Module):
    def forward(self, z):
        if FAULTY:
            spread = z.std(dim=0)  # fault-here
        else:
            spread = z.std(dim=0, correction=0)
        return (z - z.mean(dim=0)) / (spread + 1e-5)


torch.manual_seed(0)
X = torch.randn(97, 10)  # 97 = 12 batches of 8, and one over
y = (X[:, 0] + X[:, 1] > 0).long()
loader = DataLoader(TensorDataset(X, y), batch_size=8, shuffle=True)

model = nn.Sequential(nn.Linear(10, 24), Standardise(), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "batch_size": -1, "bad_losses": 0}

step = 0
for epoch in range(2):
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not loss.isfinite():
            evidence["bad_losses"] += 1
            if evidence["first_bad_step"] < 0:
                evidence.update(first_bad_step=step, batch_size=len(xb))
        step += 1
    print(f"epoch {epoch} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
