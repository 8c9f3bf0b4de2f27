"""DataLoader workers started with "spawn": the data set travels by pickle and the script is imported again in
them.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class NoisySines(IterableDataset):
    """An endless signal source: sine waves of three frequencies in noise, to be told apart. Yields ((64,), label)."""

    def __init__(self, seed: int, count: int) -> None:
        self.seed, self.count = seed, count

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        generator = torch.Generator().manual_seed(self.seed * 1000 + worker)
        t = torch.linspace(0, 1, 64)
        for _ in range(self.count // workers):
            label = int(torch.randint(3, (1,), generator=generator))
            phase = 6.283 * torch.rand(1, generator=generator)
            wave = torch.sin(6.283 * (2 + 2 * label) * t + phase)
            yield wave + 0.5 * torch.randn(64, generator=generator), label


def main() -> None:
    torch.manual_seed(34)
    torch.set_num_threads(1)
    loader = DataLoader(NoisySines(1, 3200), batch_size=32, num_workers=2, multiprocessing_context="spawn")
    model = nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2),
        nn.ReLU(),
        nn.Conv1d(16, 16, 9, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(160, 3),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, (waves, labels) in enumerate(loader):
        loss = F.cross_entropy(model(waves.unsqueeze(1)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step}: {loss.item():.4f}")
    waves, labels = next(iter(DataLoader(NoisySines(2, 300), batch_size=300)))
    with torch.no_grad():
        accuracy = (model(waves.unsqueeze(1)).argmax(1) == labels).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    assert accuracy >= 0.9, accuracy


if __name__ == "__main__":
    main()
