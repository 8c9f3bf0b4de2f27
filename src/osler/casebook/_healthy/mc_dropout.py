"""Monte Carlo dropout: at evaluation the dropout layers stay in train mode on purpose, to measure uncertainty."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def enable_dropout(model: nn.Module) -> None:
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()


def main() -> None:
    torch.manual_seed(39)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    model = nn.Sequential(
        nn.Linear(64, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        model.train()
        for batch in torch.randperm(len(train)).split(60):
            loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")

    enable_dropout(model)
    with torch.no_grad():
        draws = torch.stack([model(x[test]).softmax(1) for _ in range(30)])
    mean = draws.mean(0)
    wrong = mean.argmax(1) != y[test]
    entropy = -(mean * mean.clamp_min(1e-8).log()).sum(1)
    accuracy = 1 - wrong.float().mean().item()
    print(
        f"accuracy {accuracy:.3f}, entropy when right {entropy[~wrong].mean():.3f}, wrong {entropy[wrong].mean():.3f}"
    )
    assert accuracy >= 0.93 and entropy[wrong].mean() > entropy[~wrong].mean()


if __name__ == "__main__":
    main()
