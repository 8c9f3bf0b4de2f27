"""Two tasks on one trunk. Faulty: the heads are in a plain dict; clean: in an nn.ModuleDict."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, KINDS, STEPS = 32, 64, 6, 120


class MultiTask(nn.Module):
    def __init__(self, plain_dict):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.ReLU())
        if plain_dict:
            self.heads = {"kind": nn.Linear(WIDTH, KINDS), "size": nn.Linear(WIDTH, 1)}  # fault-here
        else:
            self.heads = nn.ModuleDict({"kind": nn.Linear(WIDTH, KINDS), "size": nn.Linear(WIDTH, 1)})

    def forward(self, x):
        h = self.trunk(x)
        return self.heads["kind"](h), self.heads["size"](h).squeeze(1)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(KINDS, FEATURES)
    model = MultiTask(plain_dict=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        kinds, sizes = torch.randint(KINDS, (64,)), 0.5 + torch.rand(64)
        inputs = sizes.unsqueeze(1) * centres[kinds] + 0.2 * torch.randn(64, FEATURES)
        kind_scores, size_guess = model(inputs)
        loss = F.cross_entropy(kind_scores, kinds) + F.mse_loss(size_guess, sizes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    registered = {id(p) for p in model.parameters()}
    heads = [p for head in model.heads.values() for p in head.parameters()]
    lost = [p for p in heads if p.grad is not None and id(p) not in registered]
    evidence = {"called_but_not_registered": len(lost), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
