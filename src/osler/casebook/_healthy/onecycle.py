"""OneCycleLR with momentum cycling, stepped every batch as it should be."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6


def conv(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs), nn.LeakyReLU(0.1)
    )


def main() -> None:
    torch.manual_seed(37)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=72, shuffle=True)
    model = nn.Sequential(
        conv(1, 16), nn.AvgPool2d(2), conv(16, 32), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=0.3, epochs=EPOCHS, steps_per_epoch=len(loader), pct_start=0.3, div_factor=25
    )
    for epoch in range(EPOCHS):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            scheduler.step()
        group = optimizer.param_groups[0]
        print(f"epoch {epoch}: {loss.item():.4f}, rate {group['lr']:.4f}, momentum {group['momentum']:.3f}")
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.92, accuracy


if __name__ == "__main__":
    main()
