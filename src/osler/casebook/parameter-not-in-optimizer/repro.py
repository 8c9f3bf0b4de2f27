"""An autoencoder with a learning rate for each part. Faulty: the list of parameter groups ends after the encoder."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, CODE, STEPS = 32, 8, 120


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CODE))
        self.decoder = nn.Sequential(nn.Linear(CODE, 64), nn.ReLU(), nn.Linear(64, FEATURES))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    mixing = torch.randn(CODE, FEATURES) / CODE**0.5
    model = Autoencoder()
    groups = [{"params": model.encoder.parameters(), "lr": 2e-3}]
    if not faulty:
        groups.append({"params": model.decoder.parameters(), "lr": 4e-3})
    optimizer = torch.optim.Adam(groups)  # fault-here
    start = [p.detach().clone() for p in model.parameters()]
    for _ in range(STEPS):
        inputs = torch.randn(64, CODE) @ mixing
        loss = F.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    unmoved = [p for p, s in zip(model.parameters(), start) if p.grad.abs().max() > 0 and torch.equal(p.detach(), s)]
    evidence = {"unmoved_with_gradient": len(unmoved), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
