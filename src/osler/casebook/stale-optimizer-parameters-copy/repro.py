"""The untrained network is kept for comparison, a copy is trained. Faulty: the optimizer owns the original."""

import argparse
import copy
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, STEPS = 16, 100


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    truth = torch.randn(FEATURES) / 4
    untrained = Regressor()
    if faulty:
        optimizer = torch.optim.Adam(untrained.parameters(), lr=5e-3)  # fault-here
        model = copy.deepcopy(untrained)
    else:
        model = copy.deepcopy(untrained)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        inputs = torch.randn(64, FEATURES)
        loss = F.mse_loss(model(inputs), torch.sin(inputs @ truth))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    used = {id(p) for p in model.parameters()}
    stale = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in used]
    moved = sum((a - b).abs().sum().item() for a, b in zip(model.parameters(), untrained.parameters()))
    evidence = {"owned_but_not_in_model": len(stale), "distance_moved": moved, "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
