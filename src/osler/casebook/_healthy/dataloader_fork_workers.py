"""A DataLoader with two forked workers that augment with numpy; each worker seeds its own generator."""

from __future__ import annotations

import multiprocessing

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class ShiftedDigits(Dataset):
    """Digits moved by up to one pixel; returns (image (1, 8, 8), label)."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images.astype(np.float32) / 16, labels
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        dy, dx = self.rng.integers(-1, 2, size=2)
        image = np.roll(self.images[i], (dy, dx), axis=(0, 1))
        return torch.from_numpy(image.copy()).unsqueeze(0), int(self.labels[i])


def seed_worker(_: int) -> None:
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed % 2**32)


def main() -> None:
    torch.manual_seed(33)
    torch.set_num_threads(1)
    digits = load_digits()
    train = ShiftedDigits(digits.images[:1400], digits.target[:1400])
    loader = DataLoader(
        train,
        batch_size=50,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_worker,
        persistent_workers=True,
        multiprocessing_context=multiprocessing.get_context("fork"),
        generator=torch.Generator().manual_seed(33),
    )
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")
    test = torch.tensor(digits.images[1400:], dtype=torch.float32).unsqueeze(1) / 16
    with torch.no_grad():
        accuracy = (model(test).argmax(1) == torch.tensor(digits.target[1400:])).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.83, accuracy


if __name__ == "__main__":
    main()
