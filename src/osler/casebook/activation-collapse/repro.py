"""Self-supervised training as in SimSiam: two noisy views of a sample shall have the same representation.

Faulty: the gradient flows through both sides, and the constant representation is the solution. Clean: the target side
is detached.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, WIDTH, CODE, EPOCHS = 32, 64, 16, 9


class Siamese(nn.Module):
    def __init__(self, stop_gradient):
        super().__init__()
        self.stop_gradient = stop_gradient
        self.encoder = nn.Sequential(
            nn.Linear(FEATURES, WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.BatchNorm1d(WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, CODE),
        )
        self.predictor = nn.Sequential(nn.Linear(CODE, 32), nn.ReLU(), nn.Linear(32, CODE))

    def embed(self, x):
        return self.encoder(x)  # fault-here

    def forward(self, first, second):
        z1, z2 = self.embed(first), self.embed(second)
        p1, p2 = self.predictor(z1), self.predictor(z2)
        if self.stop_gradient:
            z1, z2 = z1.detach(), z2.detach()
        return -0.5 * (F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean())


def spread(z):
    """1 for unit vectors that point everywhere, 0 when all are the same."""
    z = F.normalize(z, dim=1)
    return z.std(dim=0).mean().item() * z.shape[1] ** 0.5


def main(faulty):
    torch.manual_seed(1)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(10, FEATURES)
    samples = centres[torch.randint(10, (1024,))] + 0.3 * torch.randn(1024, FEATURES)
    loader = DataLoader(TensorDataset(samples), batch_size=64, shuffle=True)
    model = Siamese(stop_gradient=not faulty)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-3)
    spreads = []
    for _ in range(EPOCHS):
        for (batch,) in loader:
            noise = 0.3 * torch.randn(2, *batch.shape)
            loss = model(batch + noise[0], batch + noise[1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            spreads.append(spread(model.embed(samples)))
        model.train()
    evidence = {"spread_first_epoch": spreads[0], "spread_last_epoch": spreads[-1], "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
