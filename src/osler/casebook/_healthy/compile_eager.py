"""torch.compile (backend "eager") around a module and, apart from it, around the loss function."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


@torch.compile(backend="eager")
def focal_loss(logits: torch.Tensor, labels: torch.Tensor, gamma: float = 1.0) -> torch.Tensor:
    log_p = F.log_softmax(logits, dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)
    return (-((1 - log_p.exp()) ** gamma) * log_p).mean()


def main() -> None:
    torch.manual_seed(19)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]

    model = nn.Sequential(
        nn.Linear(64, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.AdamW(compiled.parameters(), lr=3e-3)
    for epoch in range(5):
        compiled.train()
        for batch in torch.randperm(len(train)).split(60):
            index = train[batch]
            loss = focal_loss(compiled(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    compiled.eval()
    with torch.no_grad():
        accuracy = (compiled(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.94, accuracy


if __name__ == "__main__":
    main()
