"""A table with columns in raw units into a sigmoid network. Faulty: as they are; clean: standardised."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, STEPS = 32, 150


class Network(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(columns, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)  # fault-here


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    # balance and monthly flow in cents, transactions a month, age in years
    spread = torch.tensor([300_000.0, 150_000.0, 20.0, 15.0])
    centre = torch.tensor([20_000.0, 1_000.0, 40.0, 45.0])
    table = centre + spread * torch.randn(2000, 4)
    target = ((table - centre) / spread @ torch.tensor([1.0, -2.0, 1.0, 0.5]) > 0).float()
    if not faulty:
        table = (table - table.mean(dim=0)) / table.std(dim=0)
    model = Network(columns=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    shares = []
    for _ in range(STEPS):
        rows = torch.randint(len(table), (64,))
        with torch.no_grad():
            h = model.layers[:2](table[rows])
            shares.append(((h < 0.01) | (h > 0.99)).float().mean().item())
        loss = F.binary_cross_entropy_with_logits(model(table[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evidence = {"share_at_limits": sorted(shares)[STEPS // 2], "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
