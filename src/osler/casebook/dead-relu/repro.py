"""A classifier of positive intensities, trained with SGD and a warm-up over the first steps.

Faulty: the factor is WARMUP / (step + 1) instead of its inverse, and the first updates push most units below zero for
every sample.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS, WARMUP = 32, 64, 10, 120, 40


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(FEATURES, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        h = F.relu(self.hidden(x))  # fault-here
        return self.head(h)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = 2.0 + torch.randn(CLASSES, FEATURES)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

    def warm_up(step):
        if step >= WARMUP:
            return 1.0
        return WARMUP / (step + 1) if faulty else (step + 1) / WARMUP

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up)
    alive = torch.zeros(WIDTH, dtype=torch.bool)
    for step in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = (centres[labels] + 0.8 * torch.randn(64, FEATURES)).clamp(min=0)
        if step >= 5:
            with torch.no_grad():
                alive |= (model.hidden(inputs) > 0).any(dim=0)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    evidence = {"dead_share": 1 - alive.float().mean().item(), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
