"""Multiple-instance learning with gated attention (Ilse et al. 2018): does a bag of digits hold a 9?

A trained attention is peaked and its gates are often nearly shut: sigmoid, tanh and softmax close to their limits.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

BAG = 8


class GatedAttention(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.value = nn.Sequential(nn.Linear(width, 24), nn.Tanh())
        self.gate = nn.Sequential(nn.Linear(width, 24), nn.Sigmoid())
        self.score = nn.Linear(24, 1)
        self.classify = nn.Linear(width, 1)

    def forward(self, bags: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.embed(bags)
        attention = self.score(self.value(h) * self.gate(h)).squeeze(-1).softmax(-1)
        pooled = (attention.unsqueeze(-1) * h).sum(1)
        return self.classify(pooled).squeeze(-1), attention


torch.manual_seed(49)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
nine = torch.tensor(digits.target == 9)


def bags(count: int, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = torch.randint(start, end, (count, BAG))
    # half of the bags are rebuilt without a 9, so that the classes are balanced
    others = (~nine[start:end]).nonzero().squeeze(1) + start
    clean = torch.rand(count) < 0.3
    rows[clean] = others[torch.randint(len(others), (int(clean.sum()), BAG))]
    return x[rows], nine[rows].any(1).float(), nine[rows]


model = GatedAttention()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for step in range(300):
    inputs, labels, _ = bags(48, 0, 1400)
    logits, _ = model(inputs)
    loss = F.binary_cross_entropy_with_logits(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")
with torch.no_grad():
    inputs, labels, where = bags(400, 1400, 1797)
    logits, attention = model(inputs)
accuracy = ((logits > 0) == labels.bool()).float().mean().item()
single = where.sum(1) == 1
focus = attention[single][where[single]].mean().item()
print(f"bag accuracy {accuracy:.3f}, mean attention on the only 9 of a bag {focus:.3f} (uniform {1 / BAG:.3f})")
assert accuracy >= 0.8 and focus > 0.3, (accuracy, focus)
