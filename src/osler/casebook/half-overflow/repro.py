"""Attention over sensor readings under float16 autocast, with a GradScaler."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS, LENGTH, WIDTH = 24, 26, 6, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if FAULTY:
            scores = q @ k.transpose(1, 2)  # fault-here
            scores = scores / WIDTH**0.5
        else:
            scores = (q / WIDTH**0.5) @ k.transpose(1, 2)
        return scores.softmax(-1) @ v


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleDict({"attention": Attention(), "norm": nn.LayerNorm(WIDTH)})
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        h = self.encoder["norm"](x + self.encoder["attention"](x))
        return self.head(h.mean(1))


torch.manual_seed(0)
X = torch.randn(STEPS * BATCH, LENGTH, WIDTH)
y = X.mean(1)[:, :3].argmax(1)
X[9 * BATCH + 14] *= 180  # a sensor that was never calibrated: its scores pass 65,504, where float16 ends

model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
evidence = {"first_bad_step": -1, "largest_reading": 0.0, "skipped_steps": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(xb).float(), yb)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    evidence["skipped_steps"] += int(scaler.get_scale() < before)
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence.update(first_bad_step=step, largest_reading=xb.abs().max().item())
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
