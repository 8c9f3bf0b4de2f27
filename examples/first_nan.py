"""Handwritten digits: a small CNN trained with an additive-margin softmax (CosFace), two epochs.

python examples/first_nan.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 2
BATCH = 32
LR = 3e-3
WIDTH = 32
TRAIN = 1500


class Net(nn.Module):
    """Image to embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.embed = nn.Sequential(nn.Linear(128, WIDTH), nn.ReLU(), nn.Dropout(0.25))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.embed(self.features(images))


class MarginLoss(nn.Module):
    """Cosine between embedding and class centre; the right class has to win by a margin (Wang et al. 2018)."""

    def __init__(self, width: int, classes: int, scale: float = 16.0, margin: float = 0.2) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(classes, width))
        self.scale = scale
        self.margin = margin

    def cosine(self, z: torch.Tensor) -> torch.Tensor:
        z = z / z.norm(dim=1, keepdim=True)
        centres = self.centres / self.centres.norm(dim=1, keepdim=True)
        return z @ centres.T

    def forward(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        cosine = self.cosine(z)
        cosine = cosine - self.margin * F.one_hot(labels, cosine.shape[1])
        return F.cross_entropy(self.scale * cosine, labels)


def main() -> None:
    torch.manual_seed(0)
    data, target = load_digits(return_X_y=True)
    images = torch.tensor(data, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    labels = torch.tensor(target)
    loader = DataLoader(TensorDataset(images[:TRAIN], labels[:TRAIN]), batch_size=BATCH, shuffle=True)

    model = Net()
    criterion = MarginLoss(WIDTH, 10)
    optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], lr=LR)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()

        model.eval()
        with torch.no_grad():
            guess = criterion.cosine(model(images[TRAIN:])).argmax(1)
        accuracy = (guess == labels[TRAIN:]).float().mean().item()
        print(f"epoch {epoch}  loss {total / len(loader):.3f}  accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()
