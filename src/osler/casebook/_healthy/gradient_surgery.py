"""PCGrad (Yu et al. 2020): gradients of two tasks by autograd.grad, conflicts projected out, `.grad` written by
hand.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.digit, self.parity = nn.Linear(64, 10), nn.Linear(64, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.trunk(x)
        return self.digit(h), self.parity(h)


def main() -> None:
    torch.manual_seed(100)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    model = TwoHeads()
    shared = list(model.trunk.parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    conflicts = 0
    for epoch in range(5):
        for batch in torch.randperm(len(train)).split(60):
            digit, parity = model(x[train[batch]])
            losses = (F.cross_entropy(digit, y[train[batch]]), F.cross_entropy(parity, y[train[batch]] % 2))
            heads = (list(model.digit.parameters()), list(model.parity.parameters()))
            flat = []
            for loss, own in zip(losses, heads):
                grads = torch.autograd.grad(loss, shared + own, retain_graph=True)
                flat.append(parameters_to_vector(grads[: len(shared)]))
                for p, g in zip(own, grads[len(shared) :]):
                    p.grad = g
            a, b = flat
            if torch.dot(a, b) < 0:
                conflicts += 1
                a, b = a - torch.dot(a, b) / b.square().sum() * b, b - torch.dot(a, b) / a.square().sum() * a
            for p in shared:
                p.grad = torch.empty_like(p)
            vector_to_parameters(a + b, [p.grad for p in shared])
            optimizer.step()
        print(f"epoch {epoch}: {losses[0].item():.4f} {losses[1].item():.4f}, conflicts {conflicts}")
    with torch.no_grad():
        digit, parity = model(x[test])
    scores = [
        (digit.argmax(1) == y[test]).float().mean().item(),
        (parity.argmax(1) == y[test] % 2).float().mean().item(),
    ]
    print(f"accuracy: digit {scores[0]:.3f}, parity {scores[1]:.3f}")
    assert min(scores) >= 0.88, scores


if __name__ == "__main__":
    main()
