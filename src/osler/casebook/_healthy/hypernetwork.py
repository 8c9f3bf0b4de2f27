"""A hypernetwork: the weights of the main layer are computed from a task vector, so no Parameter holds them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class HyperClassifier(nn.Module):
    """Four tasks (digit is even, is below 5, is a multiple of 3, is round) share one weight generator."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, width), nn.ReLU())
        self.task = nn.Embedding(4, 8)
        self.generate = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, width + 1))

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        made = self.generate(self.task(task))
        weight, bias = made[:, :-1], made[:, -1]
        return (self.features(x) * weight).sum(1) + bias


torch.manual_seed(84)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
questions = torch.stack([y % 2 == 0, y < 5, y % 3 == 0, (y == 0) | (y == 6) | (y == 8) | (y == 9)], dim=1).float()
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = HyperClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(260):
    rows = train[torch.randint(len(train), (64,))]
    task = torch.randint(4, (64,))
    loss = F.binary_cross_entropy_with_logits(model(x[rows], task), questions[rows, task])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")
with torch.no_grad():
    scores = [
        ((model(x[test], torch.full_like(test, t)) > 0) == questions[test, t].bool()).float().mean().item()
        for t in range(4)
    ]
print(f"accuracy per question {[round(s, 3) for s in scores]}")
assert min(scores) >= 0.85, scores
