"""A detector of a rare class. Its score starts at the prior (bias -4.6); faulty: so does its hidden layer."""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, STEPS, PRIOR = 32, 64, 120, 0.01


class Detector(nn.Module):
    def __init__(self, prior_everywhere):
        super().__init__()
        self.hidden = nn.Linear(FEATURES, WIDTH)
        self.score = nn.Linear(WIDTH, 1)
        for layer in [self.hidden, self.score] if prior_everywhere else [self.score]:
            nn.init.constant_(layer.bias, -math.log((1 - PRIOR) / PRIOR))

    def forward(self, x):
        h = torch.relu(self.hidden(x))  # fault-here
        return self.score(h).squeeze(1)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centre = torch.randn(FEATURES)
    model = Detector(prior_everywhere=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    alive = torch.zeros(WIDTH, dtype=torch.bool)
    for _ in range(STEPS):
        labels = (torch.rand(64) < 0.05).float()
        inputs = 0.8 * torch.randn(64, FEATURES) + labels.unsqueeze(1) * centre
        with torch.no_grad():
            alive |= (model.hidden(inputs) > 0).any(dim=0)
        loss = F.binary_cross_entropy_with_logits(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evidence = {"dead_share": 1 - alive.float().mean().item(), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
