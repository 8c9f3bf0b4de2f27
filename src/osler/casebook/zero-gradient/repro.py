"""An autoencoder with integer codes: rounding passes a gradient of exactly 0, a straight-through estimator does not."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, CODE, STEPS = 32, 16, 120


class IntegerAutoencoder(nn.Module):
    def __init__(self, straight_through):
        super().__init__()
        self.straight_through = straight_through
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, 64), nn.ReLU(), nn.Linear(64, FEATURES))

    def forward(self, x):
        z = 4.0 * self.encoder(x)
        if self.straight_through:
            code = z + (torch.round(z) - z).detach()
        else:
            code = torch.round(z)  # fault-here
        return self.decoder(code)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    mixing = torch.randn(8, FEATURES) / 8**0.5
    model = IntegerAutoencoder(straight_through=not faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    largest = 0.0
    for _ in range(STEPS):
        inputs = torch.randn(64, 8) @ mixing
        loss = F.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        largest = max(largest, max(p.grad.abs().max().item() for p in model.encoder.parameters()))
        optimizer.step()
    evidence = {"encoder_gradient_max": largest, "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
