"""A model of customers: the summary of their history counts by its length, but `//` makes every weight 0."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, MAX_LENGTH, WIDTH, STEPS = 12, 50, 32, 120


class Scorer(nn.Module):
    def __init__(self, integer_division):
        super().__init__()
        self.integer_division = integer_division
        self.profile = nn.Linear(FEATURES, WIDTH)
        self.history = nn.Linear(FEATURES, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, profile, history, lengths):
        weight = lengths // MAX_LENGTH if self.integer_division else lengths / MAX_LENGTH
        summary = self.history(history) * weight.unsqueeze(1)  # fault-here
        return self.head(torch.relu(self.profile(profile) + summary)).squeeze(1)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    model = Scorer(integer_division=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    truth = torch.randn(2, FEATURES)
    largest = 0.0
    for _ in range(STEPS):
        profile, history = torch.randn(2, 64, FEATURES)
        lengths = torch.randint(1, MAX_LENGTH, (64,))
        target = ((profile @ truth[0] + history @ truth[1] * lengths / MAX_LENGTH) > 0).float()
        loss = F.binary_cross_entropy_with_logits(model(profile, history, lengths), target)
        optimizer.zero_grad()
        loss.backward()
        largest = max(largest, max(p.grad.abs().max().item() for p in model.history.parameters()))
        optimizer.step()
    evidence = {"history_gradient_max": largest, "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
