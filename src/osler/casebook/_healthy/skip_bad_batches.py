"""A stream with broken sensor rows: a batch whose loss is not finite is skipped before backward, on purpose."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from torch import nn


def main() -> None:
    torch.manual_seed(52)
    torch.set_num_threads(1)
    cancer = load_breast_cancer()
    x = torch.tensor(cancer.data, dtype=torch.float32)
    y = torch.tensor(cancer.target)
    order = torch.randperm(len(y))
    train, test = order[:430], order[430:]
    x = (x - x[train].mean(0)) / x[train].std(0)
    stream = x[train].clone()
    stream[torch.randperm(len(train))[:6], torch.randint(30, (6,))] = float("nan")

    model = nn.Sequential(nn.Linear(30, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    taken = skipped = 0
    for epoch in range(9):
        for batch in torch.randperm(len(train)).split(20):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(stream[batch]), y[train[batch]])
            if not torch.isfinite(loss):
                skipped += 1
                continue
            loss.backward()
            optimizer.step()
            taken += 1
        print(f"epoch {epoch}: {taken} batches taken, {skipped} skipped")
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.92 and skipped > 0, (accuracy, skipped)


if __name__ == "__main__":
    main()
