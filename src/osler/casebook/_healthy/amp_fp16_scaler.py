"""Mixed precision in float16 with a GradScaler.

The scale starts far too high on purpose and finds its level: the first steps overflow and are skipped, as they should
be.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def main() -> None:
    torch.manual_seed(13)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=60)
    skipped = 0
    for epoch in range(6):
        for batch in torch.randperm(len(train)).split(60):
            index = train[batch]
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(model(x[index]), y[index])
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            skipped += scaler.get_scale() < scale
        exponent = int(scaler.get_scale()).bit_length() - 1
        print(f"epoch {epoch}: loss {loss.item():.4f}, scale 2^{exponent}, skipped {skipped}")

    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}, {skipped} steps skipped")
    assert accuracy >= 0.9 and 1 <= skipped <= 9, (accuracy, skipped)


if __name__ == "__main__":
    main()
