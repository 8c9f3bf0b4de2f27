"""Four micro-batches an optimizer step, scaled by what the step really holds, with the incomplete last group
applied too.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

ACCUMULATE, MICRO = 4, 8


def main() -> None:
    torch.manual_seed(11)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    x_train, y_train, x_test, y_test = x[:1390], y[:1390], x[1390:], y[1390:]

    model = nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.ReLU(), nn.Dropout(0.1), nn.Linear(96, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    updates = 0
    for epoch in range(4):
        model.train()
        batches = torch.randperm(len(x_train)).split(MICRO)
        groups = [batches[i : i + ACCUMULATE] for i in range(0, len(batches), ACCUMULATE)]
        for group in groups:
            optimizer.zero_grad()
            samples = sum(len(b) for b in group)
            for batch in group:
                loss = F.cross_entropy(model(x_train[batch]), y_train[batch], reduction="sum") / samples
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            updates += 1
        print(f"epoch {epoch}: {updates} updates, the last one over {samples} samples")

    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.88, accuracy


if __name__ == "__main__":
    main()
