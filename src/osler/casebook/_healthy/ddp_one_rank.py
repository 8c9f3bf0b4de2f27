"""DistributedDataParallel with a single rank over gloo, as a script behaves when it is not started by torchrun."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@contextlib.contextmanager
def process_group():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{Path(folder) / 'rendezvous'}",
            rank=int(os.environ.get("RANK", 0)),
            world_size=int(os.environ.get("WORLD_SIZE", 1)),
        )
        try:
            yield
        finally:
            dist.destroy_process_group()


def main() -> None:
    torch.manual_seed(87)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    with process_group():
        model = nn.Sequential(nn.Linear(64, 96), nn.LayerNorm(96), nn.ReLU(), nn.Linear(96, 10))
        parallel = DistributedDataParallel(model)
        data = TensorDataset(x[train], y[train])
        sampler = DistributedSampler(data, shuffle=True)
        loader = DataLoader(data, batch_size=40, sampler=sampler)
        optimizer = torch.optim.AdamW(parallel.parameters(), lr=3e-3)
        for epoch in range(5):
            sampler.set_epoch(epoch)
            for i, (xb, yb) in enumerate(loader):
                last = i % 2 == 1 or i == len(loader) - 1
                # gradients are exchanged only on the second of two micro-batches
                with contextlib.nullcontext() if last else parallel.no_sync():
                    loss = F.cross_entropy(parallel(xb), yb)
                    (loss / 2).backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            print(f"epoch {epoch}: {mean.item() / dist.get_world_size():.4f}")
        with torch.no_grad():
            accuracy = (parallel.module(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
