"""LayerDrop: each residual block is left out of a training step with probability 0.3 and then gets no gradient at
all.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.conv = nn.Conv1d(8, 8, 3, padding=1)
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.gelu(self.linear(F.gelu(self.conv(self.norm(x)))))


class Net(nn.Module):
    def __init__(self, width: int = 16, depth: int = 5, drop: float = 0.3) -> None:
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(8 * width, 10)
        self.drop = drop

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        h = self.stem(rows)
        for block in self.blocks:
            if self.training and torch.rand(()) < self.drop:
                continue
            h = block(h)
        return self.head(h.flatten(1))


def main() -> None:
    torch.manual_seed(63)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    left_out = 0
    for epoch in range(5):
        net.train()
        for batch in torch.randperm(len(train)).split(48):
            loss = F.cross_entropy(net(x[train[batch]]), y[train[batch]])
            optimizer.zero_grad()
            loss.backward()
            left_out += sum(block.linear.weight.grad is None for block in net.blocks)
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}, blocks left out so far {left_out}")
    net.eval()
    with torch.no_grad():
        accuracy = (net(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.92 and left_out > 100, (accuracy, left_out)


if __name__ == "__main__":
    main()
