"""Super-resolution with a perceptual loss: the feature network is frozen and kept in a plain list on purpose.

In a list it is in no `parameters()` and no state_dict of the model, which is what is wanted of a measuring device.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def train_features(x: torch.Tensor, y: torch.Tensor) -> nn.Module:
    net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU())
    head = nn.Sequential(nn.Flatten(), nn.Linear(12 * 64, 10))
    optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=3e-3)
    for batch in torch.randperm(len(y)).split(40):
        loss = F.cross_entropy(head(net(x[batch])), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net.eval().requires_grad_(False)


class Upscaler(nn.Module):
    def __init__(self, features: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.PReLU(), nn.Conv2d(24, 4, 3, padding=1), nn.PixelShuffle(2)
        )
        self.perception = [features]

    def forward(self, small: torch.Tensor) -> torch.Tensor:
        return F.interpolate(small, scale_factor=2, mode="bilinear") + self.body(small)

    def loss(self, small: torch.Tensor, large: torch.Tensor) -> torch.Tensor:
        out = self(small)
        seen, wanted = self.perception[0](out), self.perception[0](large)
        return F.l1_loss(out, large) + 0.1 * F.mse_loss(seen, wanted)


def main() -> None:
    torch.manual_seed(48)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    train, test = x[:1400], x[1400:]
    model = Upscaler(train_features(train, y[:1400]))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        for batch in torch.randperm(len(train)).split(35):
            loss = model.loss(F.avg_pool2d(train[batch], 2), train[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    with torch.no_grad():
        small = F.avg_pool2d(test, 2)
        error = F.mse_loss(model(small), test).item()
        base = F.mse_loss(F.interpolate(small, scale_factor=2, mode="bilinear"), test).item()
    print(f"mean squared error {error:.5f}, bilinear {base:.5f}")
    assert error < 0.8 * base, (error, base)


if __name__ == "__main__":
    main()
