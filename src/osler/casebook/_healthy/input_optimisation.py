"""Activation maximisation: the image is optimised, the trained network is only a measuring device.

The second optimizer owns a tensor that belongs to no module, and the network's own weights stand still.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(81)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for _ in range(3):
    for batch in torch.randperm(len(y)).split(60):
        optimizer.zero_grad()
        F.cross_entropy(net(x[batch]), y[batch]).backward()
        optimizer.step()

net.eval().requires_grad_(False)
pixels = torch.full((10, 64), 0.3) + 0.05 * torch.randn(10, 64)
pixels.requires_grad_()
optimizer = torch.optim.Adam([pixels], lr=0.03)
wanted = torch.arange(10)
for step in range(100):
    image = pixels.clamp(0, 1)
    square = image.view(-1, 8, 8)
    smooth = square.diff(dim=1).square().mean() + square.diff(dim=2).square().mean()
    loss = F.cross_entropy(net(image), wanted) + smooth
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        pixels.clamp_(0, 1)
    if step % 20 == 0:
        print(f"step {step}: {loss.item():.4f}")
with torch.no_grad():
    confidence = net(pixels).softmax(1).diagonal()
    similar = F.cosine_similarity(pixels, torch.stack([x[y == c].mean(0) for c in range(10)]))
print(f"lowest confidence {confidence.min():.3f}, mean similarity to the class's mean image {similar.mean():.3f}")
assert confidence.min() > 0.8, confidence
