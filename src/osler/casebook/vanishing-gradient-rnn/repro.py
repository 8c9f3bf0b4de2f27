"""Delayed recall: an encoder's code is the initial state, fifty noisy steps follow, then the class is asked for.

Faulty: a plain tanh RNN, whose state forgets its start within a few steps. Clean: a GRU whose update gate starts
almost closed, so that the state is kept.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES, DELAY, STEPS = 16, 32, 8, 50, 120


class Recall(nn.Module):
    def __init__(self, plain):
        super().__init__()
        self.encoder = nn.Linear(FEATURES, WIDTH)
        if plain:
            self.rnn = nn.RNN(4, WIDTH, batch_first=True)
        else:
            self.rnn = nn.GRU(4, WIDTH, batch_first=True)
            with torch.no_grad():
                self.rnn.bias_hh_l0[WIDTH : 2 * WIDTH] = 4.0  # the update gate: keep the state
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, cue, noise):
        start = torch.tanh(self.encoder(cue))  # fault-here
        _, state = self.rnn(noise, start.unsqueeze(0))
        return self.head(state[0])


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    centres = torch.randn(CLASSES, FEATURES)
    model = Recall(plain=faulty)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    ratios = []
    for _ in range(STEPS):
        labels = torch.randint(CLASSES, (32,))
        cue = centres[labels] + 0.3 * torch.randn(32, FEATURES)
        loss = F.cross_entropy(model(cue, torch.randn(32, DELAY, 4)), labels)
        optimizer.zero_grad()
        loss.backward()
        first, last = model.encoder.weight.grad, model.head.weight.grad
        ratios.append((first.square().mean().sqrt() / last.square().mean().sqrt()).item())
        optimizer.step()
    evidence = {"encoder_to_head_gradient": max(ratios), "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
