"""A network with a head for 100 classes is given one for 10. Faulty: the optimizer was built before that."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS = 32, 64, 10, 100


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.fc = nn.Linear(WIDTH, classes)

    def forward(self, x):
        return self.fc(self.body(x))


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Network(classes=100)
    if faulty:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # fault-here
        model.fc = nn.Linear(WIDTH, CLASSES)
    else:
        model.fc = nn.Linear(WIDTH, CLASSES)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 0.7 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    used = {id(p) for p in model.parameters()}
    stale = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in used]
    evidence = {"owned_but_not_in_model": len(stale), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
