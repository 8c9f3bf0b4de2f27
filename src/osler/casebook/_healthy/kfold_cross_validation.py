"""Five-fold cross-validation: five models and five optimizers, each dropped when its fold is done."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from torch import nn


class Net(nn.Module):
    def __init__(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.layers = nn.Sequential(nn.Linear(30, 20), nn.SiLU(), nn.Linear(20, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers((x - self.mean) / self.std)


def main() -> None:
    torch.manual_seed(72)
    torch.set_num_threads(1)
    cancer = load_breast_cancer()
    x = torch.tensor(cancer.data, dtype=torch.float32)
    y = torch.tensor(cancer.target)
    scores = []
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(cancer.data, cancer.target)
    for fold, (train, test) in enumerate(folds):
        net = Net(x[train].mean(0), x[train].std(0))
        optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
        for _ in range(5):
            for batch in torch.randperm(len(train)).split(32):
                rows = torch.as_tensor(train)[batch]
                loss = F.cross_entropy(net(x[rows]), y[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        with torch.no_grad():
            scores.append((net(x[test]).argmax(1) == y[test]).float().mean().item())
        print(f"fold {fold}: {scores[-1]:.3f}")
    mean = sum(scores) / len(scores)
    print(f"mean accuracy {mean:.3f}")
    assert mean >= 0.94, scores


if __name__ == "__main__":
    main()
