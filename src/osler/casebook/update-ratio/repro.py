"""A classifier trained with AdamW. Faulty: lr=1.0, so that every step rewrites the weights; clean: lr=1e-3."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, STEPS = 32, 64, 10, 120


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, WIDTH),
            nn.LayerNorm(WIDTH),
            nn.GELU(),
            nn.Linear(WIDTH, WIDTH),
            nn.LayerNorm(WIDTH),
            nn.GELU(),
            nn.Linear(WIDTH, CLASSES),
        )

    def forward(self, x):
        return self.layers(x)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Classifier()
    weights = [p for p in model.parameters() if p.dim() > 1]
    lr = 1.0 if faulty else 1e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.5)  # fault-here
    ratios = []
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (64,))
        inputs = centres[labels] + 1.5 * torch.randn(64, FEATURES)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        before = [w.detach().clone() for w in weights]
        optimizer.step()
        ratios.append([((w.detach() - b).norm() / b.norm()).item() for w, b in zip(weights, before)])
    medians = torch.tensor(ratios[:64]).median(dim=0).values
    evidence = {"median_update_ratio": medians.max().item(), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
