"""A transformer layer over short sequences, asked for the token at the first place: it needs to know positions."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, LENGTH, WIDTH, STEPS = 8, 8, 32, 120


class Reader(nn.Module):
    def __init__(self, adds_position):
        super().__init__()
        self.adds_position = adds_position
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.position = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.layer = nn.TransformerEncoderLayer(WIDTH, nhead=2, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):  # fault-here
        x = self.embedding(tokens)
        if self.adds_position:
            x = x + self.position
        return self.head(self.layer(x).mean(dim=1))


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    model = Reader(adds_position=not faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        tokens = torch.randint(TOKENS, (64, LENGTH))
        loss = F.cross_entropy(model(tokens), tokens[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    evidence = {"position_has_gradient": int(model.position.grad is not None), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
