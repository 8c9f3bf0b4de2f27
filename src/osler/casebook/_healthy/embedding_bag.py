"""Which module does a line of source come from? An EmbeddingBag over hashed n-grams (fastText's idea)."""

from __future__ import annotations

import argparse
import inspect
import random
import tarfile
import zlib

import torch
import torch.nn.functional as F
from torch import nn

BUCKETS = 4096


def features(line: str) -> list[int]:
    text = f"<{line.strip()}>"
    grams = [text[i : i + n] for n in (3, 5) for i in range(max(1, len(text) - n + 1))]
    return [zlib.crc32(g.encode()) % BUCKETS for g in grams]


class Classifier(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, 24, mode="mean")
        self.head = nn.Linear(24, classes)

    def forward(self, flat: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.head(self.bag(flat, offsets))


def collate(samples: list[tuple[list[int], int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    flat = torch.tensor([f for feats, _ in samples for f in feats])
    lengths = torch.tensor([0, *(len(feats) for feats, _ in samples[:-1])])
    return flat, lengths.cumsum(0), torch.tensor([label for _, label in samples])


def main() -> None:
    random.seed(17)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    samples = []
    for label, module in enumerate((argparse, tarfile)):
        lines = {line.strip() for line in inspect.getsource(module).splitlines() if len(line.strip()) > 15}
        samples += [(features(line), label) for line in sorted(lines)]
    random.shuffle(samples)
    test, train = samples[:300], samples[300:]

    model = Classifier(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        random.shuffle(train)
        for i in range(0, len(train), 64):
            flat, offsets, labels = collate(train[i : i + 64])
            loss = F.cross_entropy(model(flat, offsets), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    with torch.no_grad():
        flat, offsets, labels = collate(test)
        accuracy = (model(flat, offsets).argmax(1) == labels).float().mean().item()
    print(f"{len(train)} training lines, test accuracy {accuracy:.3f}")
    assert accuracy >= 0.8, accuracy


if __name__ == "__main__":
    main()
