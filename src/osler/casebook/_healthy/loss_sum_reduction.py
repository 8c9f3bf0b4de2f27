"""A summed loss over batches of 256, with the learning rate chosen for it: the gradient norms are in the hundreds."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


def main() -> None:
    torch.manual_seed(44)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 4 - 2
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    data = TensorDataset(x[train], y[train])
    loader = DataLoader(data, batch_size=256, sampler=RandomSampler(data, replacement=True, num_samples=256 * 120))

    model = nn.Sequential(nn.Linear(64, 64), nn.LeakyReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=2e-4, momentum=0.9)
    for step, (xb, yb) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
            print(f"step {step}: loss {loss.item() / 256:.4f} a sample, gradient norm {norm:.0f}")
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.93, accuracy


if __name__ == "__main__":
    main()
