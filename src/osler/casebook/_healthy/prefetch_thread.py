"""A background thread prepares batches with torch operations while the main thread trains."""

from __future__ import annotations

import queue
import threading

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Prefetcher(threading.Thread):
    def __init__(self, x: torch.Tensor, y: torch.Tensor, steps: int, size: int = 60) -> None:
        super().__init__(daemon=True)
        self.x, self.y, self.steps, self.size = x, y, steps, size
        self.queue: queue.Queue = queue.Queue(maxsize=4)
        self.generator = torch.Generator().manual_seed(86)

    def run(self) -> None:
        for _ in range(self.steps):
            rows = torch.randint(len(self.y), (self.size,), generator=self.generator)
            images = self.x[rows] + 0.05 * torch.randn(self.size, 64, generator=self.generator)
            self.queue.put((images.clamp_(0, 1), self.y[rows]))
        self.queue.put(None)


def main() -> None:
    torch.manual_seed(86)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    source = Prefetcher(x[train], y[train], steps=130)
    source.start()
    model = nn.Sequential(nn.Linear(64, 96), nn.LeakyReLU(0.01), nn.Linear(96, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    step = 0
    while (item := source.queue.get()) is not None:
        images, labels = item
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 26 == 0:
            print(f"step {step}: {loss.item():.4f}")
    source.join()
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.9, accuracy


if __name__ == "__main__":
    main()
