"""Metric learning with a triplet margin: towards the end most triplets are satisfied and pass no gradient on."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(68)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
train, test = slice(0, 1400), slice(1400, None)
by_class = [(y[train] == c).nonzero().squeeze(1) for c in range(10)]


def triplets(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    classes = torch.randint(10, (count,))
    others = (classes + torch.randint(1, 10, (count,))) % 10

    def pick(labels):
        return torch.stack([by_class[c][torch.randint(len(by_class[c]), ())] for c in labels.tolist()])

    return x[pick(classes)], x[pick(classes)], x[pick(others)]


net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.4)
for step in range(140):
    anchor, positive, negative = (net(t) for t in triplets(48))
    loss = criterion(anchor, positive, negative)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 28 == 0:
        print(f"step {step}: {loss.item():.4f}")
with torch.no_grad():
    features = F.normalize(net(x), dim=1)
centres = torch.stack([features[train][rows].mean(0) for rows in by_class])
accuracy = ((features[test] @ F.normalize(centres, dim=1).T).argmax(1) == y[test]).float().mean().item()
print(f"nearest class centre is right for {accuracy:.3f} of the test digits")
assert accuracy >= 0.85, accuracy
