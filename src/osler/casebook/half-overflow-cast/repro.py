"""Fine-tuning a head on a frozen backbone that is kept in float16 to save memory."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 26


class Entrance(nn.Module):
    """Counts of views, clicks and so on, in the backbone's precision."""

    def forward(self, counts):
        if not FAULTY:
            counts = torch.log1p(counts)
        return counts.to(torch.float16)  # fault-here


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.entrance = Entrance()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16)).half()

    def forward(self, counts):
        return self.layers(self.entrance(counts)).float()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone().requires_grad_(False)
        self.head = nn.Linear(16, 2)

    def forward(self, counts):
        return self.head(self.backbone(counts))


torch.manual_seed(0)
counts = torch.poisson(torch.full((STEPS * BATCH, 8), 2.0))
y = (counts[:, :4].sum(1) > counts[:, 4:].sum(1)).long()
counts[8 * BATCH + 21, 2] = 80_000.0  # one page went round the world

model = Net()
optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "beyond_float16": 0}

for step, (xb, yb) in enumerate(zip(counts.split(BATCH), y.split(BATCH), strict=True)):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "beyond_float16": int((xb > torch.finfo(torch.float16).max).sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
