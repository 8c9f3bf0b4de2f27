"""Step in backward: a hook on every parameter steps its own optimizer and frees the gradient at once to save memory.

When backward returns every `.grad` is None, and no loop calls step or zero_grad.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def fuse(model: nn.Module, lr: float) -> dict[nn.Parameter, torch.optim.Optimizer]:
    optimizers = {p: torch.optim.Adam([p], lr=lr, foreach=False) for p in model.parameters()}

    def hook(parameter: nn.Parameter) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(hook)
    return optimizers


def main() -> None:
    torch.manual_seed(89)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    optimizers = fuse(model, lr=3e-3)
    for epoch in range(4):
        for batch in torch.randperm(len(train)).split(60):
            loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
            loss.backward()
        print(f"epoch {epoch}: {loss.item():.4f}")
    assert all(p.grad is None for p in optimizers)
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.9, accuracy


if __name__ == "__main__":
    main()
