"""Linear probing: the backbone runs under no_grad and is in no optimizer, though its parameters still require
grad.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Probe(nn.Module):
    def __init__(self, backbone: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


def main() -> None:
    torch.manual_seed(15)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    x_train, y_train, x_test, y_test = x[:1400], y[:1400], x[1400:], y[1400:]

    # a backbone from an unsupervised task: fill in hidden pixels
    backbone = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.GELU())
    decoder = nn.Linear(64, 64)
    optimizer = torch.optim.Adam([*backbone.parameters(), *decoder.parameters()], lr=2e-3)
    for _ in range(5):
        for batch in torch.randperm(len(x_train)).split(50):
            masked = F.dropout(x_train[batch], 0.4)
            loss = F.mse_loss(decoder(backbone(masked)), x_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"reconstruction error {loss.item():.4f}")
    for parameter in backbone.parameters():
        parameter.grad = None

    probe = Probe(backbone, 64, 10)
    optimizer = torch.optim.Adam(probe.head.parameters(), lr=2e-2)
    for _ in range(8):
        for batch in torch.randperm(len(x_train)).split(50):
            loss = F.cross_entropy(probe(x_train[batch]), y_train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        accuracy = (probe(x_test).argmax(1) == y_test).float().mean().item()
    print(f"accuracy of the linear probe {accuracy:.3f}")
    assert accuracy >= 0.82, accuracy


if __name__ == "__main__":
    main()
