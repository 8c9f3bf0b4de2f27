"""Texture classification with generalised-mean pooling, the model compiled."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 26


class GeM(nn.Module):
    """(mean x^p)^(1/p) over the picture, for each channel."""

    def __init__(self, p=3.0, floor=0.0):
        super().__init__()
        self.p, self.floor = p, floor

    def forward(self, x):
        mean = x.clamp(min=self.floor).pow(self.p).mean(dim=(2, 3))
        return mean.pow(1 / self.p)  # fault-here


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.pool = GeM(floor=0.0 if FAULTY else 1e-6)

    def forward(self, x):
        return self.pool(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Features()
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.features(x))


torch.manual_seed(0)
X = torch.randn(STEPS * BATCH, 1, 8, 8)
y = (torch.rand(len(X)) < 0.5).long()
X[y == 1] = F.avg_pool2d(X[y == 1], 3, stride=1, padding=1) * 3  # smooth textures against rough ones
X[12 * BATCH + 4] = 0  # the camera's shutter stayed closed once

net = Net()
model = torch.compile(net, backend="eager")
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "blank_images": 0, "loss_is_finite": 1, "bad_gradients": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    bad = sum(not p.grad.isfinite().all() for p in net.parameters())
    if evidence["first_bad_step"] < 0 and bad:
        evidence = {
            "first_bad_step": step,
            "blank_images": int((xb.flatten(1).abs().amax(1) == 0).sum()),
            "loss_is_finite": int(loss.isfinite()),
            "bad_gradients": int(bad),
        }
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
