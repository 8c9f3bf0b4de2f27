"""A regression. Faulty: the learning rate is divided by the number of samples twice over; clean: it is not."""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, SAMPLES, STEPS = 16, 32, 20_000, 120


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(FEATURES, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(x))).squeeze(1)


def main(faulty):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors: one thread is faster and always the same
    table = torch.randn(SAMPLES, FEATURES)
    target = torch.sin(table @ torch.randn(FEATURES) / 4)
    model = Regressor()
    weights = [p for p in model.parameters() if p.dim() > 1]
    lr = 0.05 / SAMPLES**2 if faulty else 0.05
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)  # fault-here
    ratios = []
    for _ in range(STEPS):
        rows = torch.randint(SAMPLES, (64,))
        loss = F.mse_loss(model(table[rows]), target[rows])
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
