"""A machine-state classifier on sensor sequences whose attention is recomputed in the backward pass."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

FAULTY = "--faulty" in sys.argv
BATCH, LENGTH, WIDTH = 24, 6, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / WIDTH**0.5
        if FAULTY:
            weights = torch.exp(scores)  # fault-here
            weights = weights / weights.sum(-1, keepdim=True)
        else:
            weights = scores.softmax(-1)
        return weights @ v


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x + checkpoint(self.attention, x, use_reentrant=False))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Sequential(nn.Linear(WIDTH, 24), nn.GELU(), nn.Linear(24, 3))

    def forward(self, x):
        return self.head(self.block(x).mean(1))


torch.manual_seed(0)
X = torch.randn(28 * BATCH, LENGTH, WIDTH)
y = X.mean(1)[:, :3].argmax(1)
X[10 * BATCH + 2] *= 30  # one machine reports in another unit

model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "largest_reading": 0.0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "largest_reading": xb.abs().max().item()}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
