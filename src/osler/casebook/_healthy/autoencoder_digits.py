"""A deep autoencoder with a three-dimensional bottleneck; its output is a sigmoid whose targets really are 0 and
1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ELU(), nn.Linear(96, 48), nn.ELU(), nn.Linear(48, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 48), nn.ELU(), nn.Linear(48, 96), nn.ELU(), nn.Linear(96, 64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.encoder(x)
        return torch.sigmoid(self.decoder(code)), code


def main() -> None:
    torch.manual_seed(9)
    torch.set_num_threads(1)
    data = (torch.tensor(load_digits().data, dtype=torch.float32) > 7).float()
    train, test = data[:1500], data[1500:]
    loader = DataLoader(TensorDataset(train), batch_size=75, shuffle=True)
    model = Autoencoder()
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        for (x,) in loader:
            reconstruction, _ = model(x)
            loss = F.binary_cross_entropy(reconstruction, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    with torch.no_grad():
        reconstruction, code = model(test)
        error = F.binary_cross_entropy(reconstruction, test).item()
        base = F.binary_cross_entropy(train.mean(0).clamp(1e-3, 1 - 1e-3).expand_as(test), test).item()
    print(f"test error {error:.4f}, of the mean image {base:.4f}, code spread {code.std(0).tolist()}")
    assert error < 0.8 * base, (error, base)


if __name__ == "__main__":
    main()
