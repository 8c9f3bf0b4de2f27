"""FGSM adversarial training: gradients with respect to the input, then a second pass for the weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

EPSILON = 0.08


def perturb(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_(True)
    F.cross_entropy(model(x), y).backward()  # leaves gradients in the weights too; the caller clears them
    return (x + EPSILON * x.grad.sign()).clamp(0, 1).detach()


def main() -> None:
    torch.manual_seed(80)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        for batch in torch.randperm(len(train)).split(60):
            clean, labels = x[train[batch]], y[train[batch]]
            attacked = perturb(model, clean, labels)
            optimizer.zero_grad()
            loss = 0.5 * F.cross_entropy(model(clean), labels) + 0.5 * F.cross_entropy(model(attacked), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    attacked = perturb(model, x[test], y[test])
    model.zero_grad()
    with torch.no_grad():
        clean = (model(x[test]).argmax(1) == y[test]).float().mean().item()
        robust = (model(attacked).argmax(1) == y[test]).float().mean().item()
    print(f"accuracy {clean:.3f}, under attack {robust:.3f}")
    assert clean >= 0.9 and robust >= 0.6, (clean, robust)


if __name__ == "__main__":
    main()
