"""Linear warm-up from exactly 0 and a cosine that ends at exactly 0: the first and the last update change nothing."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

EPOCHS, BATCH, WARMUP = 6, 48, 20


class PatchTransformer(nn.Module):
    """Reads a digit as sixteen patches of 2x2 pixels."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, 17, width) * 0.3)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], dim=1) + self.position
        return self.head(self.encoder(tokens).mean(1))


def main() -> None:
    torch.manual_seed(36)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    total = EPOCHS * math.ceil(len(train) / BATCH)

    def factor(step: int) -> float:
        if step < WARMUP:
            return step / WARMUP
        return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (total - 1 - WARMUP)))

    model = PatchTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    rates = []
    for epoch in range(EPOCHS):
        for batch in torch.randperm(len(train)).split(BATCH):
            loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            rates.append(scheduler.get_last_lr()[0])
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: {loss.item():.4f}, learning rate {rates[-1]:.2e}")
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}, first rate {rates[0]}, last rate {rates[-1]:.1e}")
    assert accuracy >= 0.85 and rates[0] == 0 and rates[-1] < 1e-9, (accuracy, rates[0], rates[-1])


if __name__ == "__main__":
    main()
