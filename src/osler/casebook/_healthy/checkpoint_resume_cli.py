"""A command-line trainer that saves, throws everything away, builds anew, and resumes from its checkpoint."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


@dataclass
class Config:
    width: int = 64
    lr: float = 6e-3
    seed: int = 73


def build(config: Config) -> tuple[nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    model = nn.Sequential(nn.Linear(64, config.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(config.width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)


def train(model, optimizer, scheduler, x, y, epochs: int) -> float:
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(60):
            loss = F.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    return loss.item()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3, help="epochs before and after the interruption")
    arguments = parser.parse_args(argv)
    config = Config()
    random.seed(config.seed)
    torch.manual_seed(config.seed)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train_rows, test_rows = order[:1440], order[1440:]

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        model, optimizer, scheduler = build(config)
        print(f"first part: {train(model, optimizer, scheduler, x[train_rows], y[train_rows], arguments.epochs):.4f}")
        states = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
        torch.save({k: v.state_dict() for k, v in states.items()} | {"config": asdict(config)}, path)
        torch.save(model, Path(folder) / "whole.pt")  # the pickled object, classes by reference
        del model, optimizer, scheduler

        state = torch.load(path, weights_only=True)
        model, optimizer, scheduler = build(Config(**state["config"]))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        whole = torch.load(Path(folder) / "whole.pt", weights_only=False)
        assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), model.parameters()))
        print(f"resumed: {train(model, optimizer, scheduler, x[train_rows], y[train_rows], arguments.epochs):.4f}")

    model.eval()
    with torch.no_grad():
        accuracy = (model(x[test_rows]).argmax(1) == y[test_rows]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    return 0 if accuracy >= 0.89 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
