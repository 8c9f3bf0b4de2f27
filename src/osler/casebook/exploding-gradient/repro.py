"""A siamese recurrent network learns which sequences belong together.

Faulty: different sequences are pushed apart without limit and the gradient is not clipped, so that the recurrent
weights grow and, over thirty time steps, the gradient with them. Clean: a margin, and clipping.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, LENGTH, WIDTH, CLASSES, BATCH, STEPS = 4, 30, 32, 8, 32, 96


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(CHANNELS, WIDTH, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(WIDTH, 8, bias=False)  # a bias would cancel in the difference
        nn.init.orthogonal_(self.rnn.weight_hh_l0)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    frequency = 0.1 + 0.5 * torch.rand(CLASSES, 1, CHANNELS)
    phase = 6.28 * torch.rand(CLASSES, 1, CHANNELS)
    time = torch.arange(LENGTH).view(1, LENGTH, 1)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-4)
    norms = []
    for _ in range(STEPS):
        left = torch.randint(CLASSES, (BATCH,))
        right = torch.where(torch.rand(BATCH) < 0.5, left, torch.randint(CLASSES, (BATCH,)))
        labels = torch.cat([left, right])
        waves = torch.sin(frequency[labels] * time + phase[labels]) + 0.3 * torch.randn(2 * BATCH, LENGTH, CHANNELS)
        a, b = model(waves).chunk(2)
        distance = (a - b).square().sum(dim=1)
        same = left == right
        if faulty:
            loss = torch.where(same, distance, -distance).mean()
        else:
            too_near = F.relu(1.0 - (distance + 1e-6).sqrt()).square()
            loss = torch.where(same, distance, too_near).mean()
        optimizer.zero_grad()
        loss.backward()
        if not faulty:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        norms.append(torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())
        optimizer.step()  # fault-here
    growth = norms[79] / max(norms[:8])
    evidence = {"gradient_norm_growth": growth, "gradient_norm_last": norms[-1], "final_loss": loss.item()}
    Path("evidence.json").write_text(json.dumps(evidence, allow_nan=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    main(faulty=parser.parse_args().faulty)
