"""A sparsely gated mixture: each sample goes to its best two of twelve experts, so some experts see no sample on a
step.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class MoE(nn.Module):
    def __init__(self, width: int, experts: int = 12, k: int = 2) -> None:
        super().__init__()
        self.k = k
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, width)) for _ in range(experts)
        )
        self.idle_on_last_call = 0

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        probability = self.router(x).softmax(-1)
        weight, chosen = probability.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        self.idle_on_last_call = 0
        for e, expert in enumerate(self.experts):
            rows, slot = (chosen == e).nonzero(as_tuple=True)
            if len(rows) == 0:
                self.idle_on_last_call += 1
                continue
            out = out.index_add(0, rows, weight[rows, slot].unsqueeze(1) * expert(x[rows]))
        # load balancing loss of the Switch Transformer (Fedus et al. 2021)
        share = F.one_hot(chosen[:, 0], len(self.experts)).float().mean(0)
        balance = len(self.experts) * (share * probability.mean(0)).sum()
        return x + out, balance


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(64, 48)
        self.moe = MoE(48)
        self.head = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 10))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, balance = self.moe(self.stem(x))
        return self.head(h), balance


torch.manual_seed(31)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
idle = 0
for epoch in range(2):
    for batch in torch.randperm(len(train)).split(16):
        logits, balance = net(x[train[batch]])
        loss = F.cross_entropy(logits, y[train[batch]]) + 0.01 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        idle += net.moe.idle_on_last_call
    print(f"epoch {epoch}: {loss.item():.4f}, expert-steps without a sample so far {idle}")

with torch.no_grad():
    accuracy = (net(x[test])[0].argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9 and idle > 0, (accuracy, idle)
