"""A classifier with three hidden layers. Faulty: in a plain list; clean: in an nn.ModuleList."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS = 32, 64, 10, 100


class Classifier(nn.Module):
    def __init__(self, plain_list):
        super().__init__()
        self.stem = nn.Linear(FEATURES, WIDTH)
        if plain_list:
            self.layers = [nn.Linear(WIDTH, WIDTH) for _ in range(3)]  # fault-here
        else:
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Classifier(plain_list=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 0.7 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    registered = {id(p) for p in model.parameters()}
    lost = [p for layer in model.layers for p in layer.parameters() if p.grad is not None and id(p) not in registered]
    evidence = {"called_but_not_registered": len(lost), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
