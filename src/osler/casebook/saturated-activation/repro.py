"""A classifier of 8x8 grey images. Faulty: bytes go in as they are; clean: centred and scaled."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

PIXELS, WIDTH, CLASSES, STEPS = 64, 64, 10, 120


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(PIXELS, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        h = torch.tanh(self.hidden(x))  # fault-here
        return self.head(h)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    patterns = 255.0 * torch.rand(CLASSES, PIXELS)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shares = []
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        images = (patterns[labels] + 60.0 * torch.randn(64, PIXELS)).clamp(0, 255).round()
        inputs = images if faulty else (images - 127.5) / 80.0
        with torch.no_grad():
            shares.append((torch.tanh(model.hidden(inputs)).abs() > 0.98).float().mean().item())
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evidence = {"share_at_limits": sorted(shares)[STEPS // 2], "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
