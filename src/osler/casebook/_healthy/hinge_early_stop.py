"""A multi-class hinge loss: once every margin holds the loss and its gradient are exactly 0, and the script stops."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn

PATIENCE = 12


def main() -> None:
    torch.manual_seed(61)
    torch.set_num_threads(1)
    wine = load_wine()
    x = torch.tensor(wine.data, dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    y = torch.tensor(wine.target)
    order = torch.randperm(len(y))
    train, test = order[:140], order[140:]
    model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
    criterion = nn.MultiMarginLoss(margin=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)
    quiet = silent_steps = 0
    for step in range(400):
        rows = train[torch.randint(len(train), (16,))]
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        silent_steps += loss.item() == 0
        quiet = quiet + 1 if loss.item() == 0 else 0
        if quiet == PATIENCE:
            print(f"{PATIENCE} batches in a row without a violated margin")
            break
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"stopped after {step + 1} steps, {silent_steps} with loss 0; test accuracy {accuracy:.3f}")
    assert accuracy >= 0.9 and silent_steps > 0, (accuracy, silent_steps)


if __name__ == "__main__":
    main()
