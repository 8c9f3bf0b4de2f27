"""LoRA: low-rank adapters on a frozen network; B starts at 0, so A gets a gradient of exactly 0 on the first step."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 8, alpha: float = 16.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        layer.bias.copy_(self.base.bias)
        return layer


def fit(model: nn.Module, x: torch.Tensor, y: torch.Tensor, epochs: int, lr: float) -> float:
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(50):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main() -> None:
    torch.manual_seed(30)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    # the new domain: the same digits, turned by a quarter
    turned = x.view(-1, 8, 8).rot90(1, (1, 2)).flatten(1)
    x_train, y_train = x[:1400], y[:1400]

    base = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
    print(f"pre-training loss {fit(base, x_train, y_train, 3, 3e-3):.4f}")
    adapted = nn.Sequential(*(LoRALinear(m) if isinstance(m, nn.Linear) else m for m in base))
    trainable = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    print(f"adapters hold {trainable} of {sum(p.numel() for p in adapted.parameters())} parameters")
    with torch.no_grad():
        before = (adapted(turned[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(f"adaptation loss {fit(adapted, turned[:1400], y_train, 7, 5e-3):.4f}")

    merged = nn.Sequential(*(m.merged() if isinstance(m, LoRALinear) else m for m in adapted))
    with torch.no_grad():
        after = (merged(turned[1400:]).argmax(1) == y[1400:]).float().mean().item()
    print(f"accuracy on the turned digits {before:.3f} -> {after:.3f}")
    assert after >= 0.75 and after > before + 0.3, (before, after)


if __name__ == "__main__":
    main()
