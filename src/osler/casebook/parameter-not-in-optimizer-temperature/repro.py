"""Two encoders meet in a contrastive loss with a learnable scale. Faulty: only the encoders are optimized."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

LATENT, STEPS = 8, 120


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16))
        self.right = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, a, b):
        return F.normalize(self.left(a), dim=1), F.normalize(self.right(b), dim=1)


class ContrastiveLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, a, b):
        logits = self.log_scale.exp() * a @ b.T
        targets = torch.arange(len(a))
        return 0.5 * (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets))


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    to_left, to_right = torch.randn(LATENT, 24), torch.randn(LATENT, 40)
    model, criterion = TwoTowers(), ContrastiveLoss()
    parameters = list(model.parameters())
    if not faulty:
        parameters += list(criterion.parameters())
    optimizer = torch.optim.Adam(parameters, lr=3e-3)  # fault-here
    start = criterion.log_scale.item()
    for _ in range(STEPS):
        latent = torch.randn(32, LATENT)
        loss = criterion(*model(latent @ to_left, latent @ to_right))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evidence = {
        "temperature_gradient": criterion.log_scale.grad.abs().item(),
        "temperature_change": abs(criterion.log_scale.item() - start),
        "final_loss": loss.item(),
    }
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
