"""A sparse autoencoder: ReLU code with an L1 penalty and a top-k branch. On any sample most units are 0, none for
good.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

CODE, TOP = 128, 24


class SparseAutoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(64, CODE)
        self.activation = nn.ReLU()
        self.decoder = nn.Linear(CODE, 64)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.activation(self.encoder(x - self.decoder.bias))
        kept, where = code.topk(TOP, dim=1)
        sparse = torch.zeros_like(code).scatter(1, where, kept)
        return self.decoder(sparse), sparse


torch.manual_seed(50)
torch.set_num_threads(1)
x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
train, test = x[:1500], x[1500:]
model = SparseAutoencoder()
with torch.no_grad():
    model.decoder.weight.copy_(F.normalize(model.encoder.weight.T, dim=0))
    model.decoder.bias.copy_(train.mean(0))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for batch in torch.randperm(len(train)).split(75):
        reconstruction, code = model(train[batch])
        loss = (reconstruction - train[batch]).square().sum(1).mean() + 2e-3 * code.abs().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():  # unit-length dictionary
            model.decoder.weight.copy_(F.normalize(model.decoder.weight, dim=0))
    print(f"epoch {epoch}: {loss.item():.4f}")
with torch.no_grad():
    reconstruction, code = model(test)
explained = 1 - ((reconstruction - test).square().sum() / (test - train.mean(0)).square().sum()).item()
active = (code > 0).float().mean().item()
dead = (code == 0).all(0).float().mean().item()
print(f"explained variance {explained:.3f}, active share {active:.3f}, units never active {dead:.3f}")
assert explained > 0.85 and active < 0.25 and dead < 0.4, (explained, active, dead)
