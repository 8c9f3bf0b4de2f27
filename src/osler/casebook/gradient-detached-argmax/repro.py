"""Ordered grades from 0 to 4. Faulty: the squared error of the argmax, through which no gradient flows, so that
`backward()` raises. Clean: the squared error of the expected grade.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, GRADES, STEPS = 16, 64, 5, 120


class Grader(nn.Module):
    def __init__(self, hard):
        super().__init__()
        self.hard = hard
        self.layers = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, GRADES))

    def forward(self, x):
        scores = self.layers(x)
        if self.hard:
            return scores.argmax(dim=1).float()  # fault-here
        return scores.softmax(dim=1) @ torch.arange(GRADES, dtype=torch.float32)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    truth = torch.randn(FEATURES) / 4
    model = Grader(hard=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(STEPS):
        inputs = torch.randn(64, FEATURES)
        grades = (2.0 + 1.5 * inputs @ truth).round().clamp(0, GRADES - 1)
        loss = F.mse_loss(model(inputs), grades)
        if step in (0, STEPS - 1):
            evidence = {"loss_requires_grad": int(loss.requires_grad), "loss": loss.item(), "step": step}
            Path("evidence.json").write_text(json.dumps(evidence))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
