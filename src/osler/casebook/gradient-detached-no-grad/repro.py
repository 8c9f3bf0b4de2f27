"""A classifier of encoder and head, trained together. Faulty: the encoder runs under no_grad."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS = 32, 64, 10, 100


class Classifier(nn.Module):
    def __init__(self, cut):
        super().__init__()
        self.cut = cut
        self.encoder = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        if self.cut:
            with torch.no_grad():
                features = self.encoder(x)  # fault-here
        else:
            features = self.encoder(x)
        return self.head(features)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Classifier(cut=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 0.7 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    cut_off = [p for p in model.encoder.parameters() if p.grad is None]
    evidence = {"encoder_parameters_without_gradient": len(cut_off), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
