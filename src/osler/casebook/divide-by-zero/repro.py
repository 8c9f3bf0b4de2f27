"""A small convolutional network on scanned digits; each image is brought to unit length first."""

import json
import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH = 64


class UnitLength(nn.Module):
    def forward(self, x):
        length = x.square().sum(dim=(1, 2, 3), keepdim=True).sqrt()
        if FAULTY:
            return 8 * x / length  # fault-here
        return 8 * x / length.clamp(min=1e-6)


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = UnitLength()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.bn = nn.BatchNorm2d(12)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.act(self.bn(self.conv(self.scale(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Stem()
        self.body = nn.Sequential(nn.Conv2d(12, 16, 3, stride=2), nn.ReLU(inplace=True), nn.Flatten(), nn.Dropout(0.2))

    def forward(self, x):
        return self.body(self.stem(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(16 * 9, 10)

    def forward(self, x):
        return self.head(self.encoder(x))


torch.manual_seed(0)
digits = load_digits()
X = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
X[9 * BATCH + 17] = 0  # the scanner delivered an empty page

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "blank_images": 0}

for step, (xb, yb) in enumerate(zip(X.split(BATCH), y.split(BATCH), strict=True)):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "blank_images": int((xb.flatten(1).norm(dim=1) == 0).sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
