"""A classifier whose LayerNorm is built in `__init__`. Faulty: `forward` forgets it."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS = 32, 64, 10, 100


class Classifier(nn.Module):
    def __init__(self, forgets_norm):
        super().__init__()
        self.forgets_norm = forgets_norm
        self.hidden = nn.Linear(FEATURES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):  # fault-here
        h = self.hidden(x)
        if not self.forgets_norm:
            h = self.norm(h)
        return self.head(torch.relu(h))


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Classifier(forgets_norm=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 0.7 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    evidence = {"parameters_without_gradient": len(missing), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
