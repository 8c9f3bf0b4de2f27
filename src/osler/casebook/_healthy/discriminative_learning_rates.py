"""Fine-tuning with a learning rate of 1e-6 for a good backbone and 1e-2 for the new head: tiny updates, on
purpose.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def run(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, epochs: int) -> float:
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(48):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main() -> None:
    torch.manual_seed(69)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    backbone = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())

    source = nn.Sequential(backbone, nn.Linear(48, 10))
    print(f"digits: {run(source, torch.optim.Adam(source.parameters(), lr=3e-3), x[train], y[train], 3):.4f}")

    odd = y % 2  # the new task
    target = nn.Sequential(backbone, nn.Linear(48, 2))
    optimizer = torch.optim.AdamW(
        [{"params": target[0].parameters(), "lr": 1e-6}, {"params": target[1].parameters(), "lr": 1e-2}]
    )
    print(f"odd or even: {run(target, optimizer, x[train], odd[train], 4):.4f}")
    with torch.no_grad():
        accuracy = (target(x[test]).argmax(1) == odd[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
