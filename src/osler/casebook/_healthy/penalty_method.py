"""A penalty method: fair scores by a constraint whose weight rises from 1 to 1000, so gradients rise and fall in
stages.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn


def main() -> None:
    torch.manual_seed(104)
    torch.set_num_threads(1)
    table, target = load_diabetes(return_X_y=True)
    x = torch.tensor(table, dtype=torch.float32) * 21
    y = torch.tensor(target, dtype=torch.float32)
    y = (y - y.mean()) / y.std()
    group = x[:, 1] > 0  # the sex column; the mean prediction of both groups shall be equal
    y = y + 0.8 * group - 0.8 * group.float().mean()
    train, test = slice(0, 340), slice(340, None)
    model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def gap(prediction: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
        return prediction[members].mean() - prediction[~members].mean()

    for weight in (0.0, 1.0, 10.0, 100.0, 1000.0):
        for _ in range(60):
            prediction = model(x[train]).squeeze(1)
            loss = F.mse_loss(prediction, y[train]) + weight * gap(prediction, group[train]).square()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
        difference = gap(prediction, group[train]).item()
        print(f"weight {weight:6.0f}: loss {loss.item():.4f}, gap {difference:+.4f}")
        if weight == 0:
            free = difference
    with torch.no_grad():
        prediction = model(x[test]).squeeze(1)
    correlation = torch.corrcoef(torch.stack([prediction, y[test]]))[0, 1].item()
    print(f"gap without the constraint {free:.3f}, with it {difference:.4f}; test correlation {correlation:.3f}")
    assert abs(difference) < 0.05 * abs(free) and correlation > 0.4, (free, difference, correlation)


if __name__ == "__main__":
    main()
