"""Fine-tuning: the backbone learnt on digits 0-4, is frozen and kept in eval mode; a new head learns digits 5-9."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(32 * 16, classes)
        self.frozen = False

    def train(self, mode: bool = True) -> Classifier:
        super().train(mode)
        if self.frozen:  # BatchNorm keeps the statistics it has learnt
            self.backbone.eval()
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.backbone(x))


def fit(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int, lr: float) -> None:
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    model.train()
    for epoch in range(epochs):
        for batch in torch.randperm(len(y)).split(32):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"  epoch {epoch}: loss {loss.item():.4f}")


torch.manual_seed(14)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
low = y < 5

model = Classifier(5)
print("pre-training on 0-4")
fit(model, x[low], y[low], epochs=3, lr=2e-3)

model.backbone.requires_grad_(False)
model.frozen = True
model.head = nn.Linear(32 * 16, 5)
reference = {k: v.clone() for k, v in model.backbone.state_dict().items()}
high_x, high_y = x[~low], y[~low] - 5
print("fine-tuning on 5-9")
fit(model, high_x[:700], high_y[:700], epochs=4, lr=2e-3)

model.eval()
with torch.no_grad():
    accuracy = (model(high_x[700:]).argmax(1) == high_y[700:]).float().mean().item()
same = all(torch.equal(v, reference[k]) for k, v in model.backbone.state_dict().items())
print(f"test accuracy on 5-9 {accuracy:.3f}, backbone unchanged: {same}")
assert accuracy >= 0.88 and same, (accuracy, same)
