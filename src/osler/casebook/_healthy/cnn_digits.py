"""A small convolutional network with BatchNorm and dropout on scikit-learn's 8x8 digits."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 2 * 2, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    correct = total = 0
    for x, y in loader:
        correct += int((model(x).argmax(1) == y).sum())
        total += len(y)
    return correct / total


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(labels)
    train_idx, test_idx = train_test_split(range(len(y)), test_size=0.2, stratify=labels, random_state=0)
    train = DataLoader(TensorDataset(x[train_idx], y[train_idx]), batch_size=64, shuffle=True, drop_last=True)
    test = DataLoader(TensorDataset(x[test_idx], y[test_idx]), batch_size=256)

    model = ConvNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    for epoch in range(8):
        model.train()
        running = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / len(train):.4f}, test accuracy {evaluate(model, test):.3f}")

    accuracy = evaluate(model, test)
    print(f"final test accuracy {accuracy:.3f}")
    assert accuracy >= 0.95, accuracy


if __name__ == "__main__":
    main()
