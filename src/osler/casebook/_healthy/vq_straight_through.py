"""A VQ-VAE: argmin codes, the straight-through estimator, codebook and commitment losses with detach on either
side.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class VectorQuantizer(nn.Module):
    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.codebook = nn.Embedding(codes, width)
        nn.init.normal_(self.codebook.weight, std=0.5)

    def forward(self, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        index = torch.cdist(z.detach(), self.codebook.weight.detach()).argmin(-1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    """A digit as four codes, one for each quarter of the feature vector."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.SiLU(), nn.Linear(96, 32))
        self.quantizer = VectorQuantizer(32, 8)
        self.decoder = nn.Sequential(nn.Linear(32, 96), nn.SiLU(), nn.Linear(96, 64))

    def forward(self, x: torch.Tensor):
        z = self.encoder(x).view(-1, 8)
        q, loss, index = self.quantizer(z)
        return self.decoder(q.view(len(x), -1)), loss, index


def main() -> None:
    torch.manual_seed(66)
    torch.set_num_threads(1)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    train, test = x[:1500], x[1500:]
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(8):
        for batch in torch.randperm(len(train)).split(60):
            out, vq_loss, index = model(train[batch])
            loss = F.mse_loss(out, train[batch]) + 0.1 * vq_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}, codes in use {index.unique().numel()} of 32")
    with torch.no_grad():
        error = F.mse_loss(model(test)[0], test).item()
    base = F.mse_loss(train.mean(0).expand_as(test), test).item()
    print(f"reconstruction error {error:.4f}, of the mean image {base:.4f}")
    assert error < 0.6 * base, (error, base)


if __name__ == "__main__":
    main()
