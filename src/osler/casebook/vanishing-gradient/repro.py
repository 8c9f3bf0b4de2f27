"""A classifier of twenty hidden layers: sigmoids in a row (faulty), or pre-norm residual blocks (clean)."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, DEPTH, CLASSES, STEPS = 32, 64, 20, 10, 120


class SigmoidNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [FEATURES] + [WIDTH] * DEPTH
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        for layer in self.layers:
            x = torch.sigmoid(layer(x))  # fault-here
        return self.head(x)


class ResidualNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATURES, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(DEPTH - 1))
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH - 1))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.stem(x)
        for norm, layer in zip(self.norms, self.layers):
            x = x + torch.relu(layer(norm(x)))
        return self.head(x)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = SigmoidNet() if faulty else ResidualNet()
    first, last = (model.layers[0] if faulty else model.stem).weight, model.head.weight
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    ratios = []
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 0.7 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        ratios.append((first.grad.square().mean().sqrt() / last.grad.square().mean().sqrt()).item())
        optimizer.step()
    evidence = {"first_to_last_gradient": max(ratios), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
