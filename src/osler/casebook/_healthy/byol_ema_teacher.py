"""BYOL on the digits: stop-gradient, a teacher made by deepcopy that follows the student as a moving average."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def augment(x: torch.Tensor) -> torch.Tensor:
    images = x.view(-1, 8, 8)
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    images = images.roll((dy, dx), (1, 2))
    images = images * (torch.rand(len(images), 1, 1) * 0.6 + 0.7) + 0.1 * torch.randn_like(images)
    return F.dropout(images.flatten(1), 0.15)


def encoder() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))


torch.manual_seed(27)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1400], order[1400:]

student = encoder()
teacher = copy.deepcopy(student)
teacher.requires_grad_(False)
predictor = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.AdamW([*student.parameters(), *predictor.parameters()], lr=2e-3, weight_decay=1e-4)

for epoch in range(6):
    for batch in torch.randperm(len(train)).split(70):
        a, b = augment(x[train[batch]]), augment(x[train[batch]])
        with torch.no_grad():
            goal_a, goal_b = teacher(a), teacher(b)
        loss = 2 - F.cosine_similarity(predictor(student(a)), goal_b).mean()
        loss = loss - F.cosine_similarity(predictor(student(b)), goal_a).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), student.parameters()):
                t.lerp_(s, 0.02)
    print(f"epoch {epoch}: {loss.item():.4f}")

student.eval()
with torch.no_grad():
    features = F.normalize(student(x), dim=1)
similarity = features[test] @ features[train].T
accuracy = (y[train][similarity.argmax(1)] == y[test]).float().mean().item()
spread = (features.std(0).mean() * features.shape[1] ** 0.5).item()
print(f"nearest neighbour in feature space is the same digit: {accuracy:.3f}, feature spread {spread:.2f}")
assert accuracy >= 0.85 and spread > 0.2, (accuracy, spread)
