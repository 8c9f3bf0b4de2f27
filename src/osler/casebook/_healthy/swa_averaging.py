"""Stochastic weight averaging: an averaged copy, SWALR, and BatchNorm statistics recomputed at the end."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(28)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=60, shuffle=True)

    model = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 10))
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    swa = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2)
    for epoch in range(7):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
        if epoch >= 3:
            averaged.update_parameters(model)
            swa.step()
        else:
            cosine.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}, learning rate {optimizer.param_groups[0]['lr']:.4f}")
    update_bn(loader, averaged)
    averaged.eval()
    with torch.no_grad():
        accuracy = (averaged(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"averaged over {int(averaged.n_averaged)} models: test accuracy {accuracy:.3f}")
    assert accuracy >= 0.94, accuracy


if __name__ == "__main__":
    main()
