"""A classifier regularised by the squared norm of its input gradient (double backpropagation, Drucker & LeCun
1992).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(18)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
model = nn.Sequential(nn.Linear(64, 96), nn.Softplus(beta=5), nn.Linear(96, 96), nn.Softplus(beta=5), nn.Linear(96, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def input_gradient(inputs: torch.Tensor, labels: torch.Tensor, create_graph: bool) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = inputs.clone().requires_grad_()
    loss = F.cross_entropy(model(inputs), labels)
    # per sample, so the mean is taken out again
    (grad,) = torch.autograd.grad(loss * len(inputs), inputs, create_graph=create_graph)
    return loss, grad.square().sum(1).mean()


for epoch in range(5):
    for batch in torch.randperm(len(train)).split(60):
        index = train[batch]
        loss, penalty = input_gradient(x[index], y[index], create_graph=True)
        total = loss + 0.02 * penalty
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, penalty {penalty.item():.4f}")

with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
_, final_penalty = input_gradient(x[test], y[test], create_graph=False)
print(f"test accuracy {accuracy:.3f}, mean squared input gradient {final_penalty.item():.4f}")
assert accuracy >= 0.92, accuracy
