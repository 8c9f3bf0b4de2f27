"""Attention pooling over sets of varying size, with a bonus for attention that is spread out."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, SIZE, WIDTH = 16, 8, 10


class Entropy(nn.Module):
    """-sum p log p, with 0 log 0 = 0."""

    def forward(self, p):
        if FAULTY:
            logs = torch.where(p > 0, torch.log(p), torch.zeros_like(p))  # fault-here
        else:
            logs = torch.log(torch.where(p > 0, p, torch.ones_like(p)))
        return -(p * logs).sum(-1)


class AttentionPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(24, 1)
        self.entropy = Entropy()

    def forward(self, h, present):
        score = self.score(h).squeeze(-1).masked_fill(~present, float("-inf"))
        p = score.softmax(-1)
        return (p.unsqueeze(-1) * h).sum(1), self.entropy(p)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(WIDTH, 24)
        self.pool = AttentionPool()

    def forward(self, x, present):
        return self.pool(F.gelu(self.embed(x)), present)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(24, 3)

    def forward(self, x, present):
        pooled, entropy = self.encoder(x, present)
        return self.head(pooled), entropy


torch.manual_seed(0)
# Sorted by size, as loaders that bucket by length do: the full sets come first, the shorter ones later.
sizes = torch.cat([torch.full((11 * BATCH,), SIZE), torch.randint(3, SIZE, (17 * BATCH,))])
X = torch.randn(len(sizes), SIZE, WIDTH)
present = torch.arange(SIZE) < sizes[:, None]
y = (X * present.unsqueeze(-1)).sum(1)[:, :3].argmax(1)

model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "loss_is_finite": 1, "bad_gradients": 0}

for step, (xb, mb, yb) in enumerate(zip(X.split(BATCH), present.split(BATCH), y.split(BATCH), strict=True)):
    logits, entropy = model(xb, mb)
    loss = F.cross_entropy(logits, yb) - 0.01 * entropy.mean()
    optimizer.zero_grad()
    loss.backward()
    bad = sum(not p.grad.isfinite().all() for p in model.parameters())
    if evidence["first_bad_step"] < 0 and bad:
        evidence = {"first_bad_step": step, "loss_is_finite": int(loss.isfinite()), "bad_gradients": int(bad)}
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
