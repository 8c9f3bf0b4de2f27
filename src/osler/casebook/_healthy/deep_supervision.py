"""Early exits after every stage. A plain list repeats the registered stages for iteration; one parameter is
constant on purpose.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class EarlyExitNet(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.stage1 = nn.Sequential(nn.Linear(64, width), nn.ReLU())
        self.stage2 = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.stage3 = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.exits = nn.ModuleDict({f"exit{i}": nn.Linear(width, 10) for i in (1, 2, 3)})
        # the same objects again, in order; they are registered above
        self.stages = [self.stage1, self.stage2, self.stage3]
        # what each exit costs in multiplications; saved with the weights, never learnt
        self.cost = nn.Parameter(torch.tensor([1.0, 1.7, 2.4]), requires_grad=False)

    def forward(self, x: torch.Tensor, confidence: float | None = None) -> list[torch.Tensor]:
        outputs = []
        for stage, leave in zip(self.stages, self.exits.values()):
            x = stage(x)
            outputs.append(leave(x))
            if confidence is not None and outputs[-1].softmax(-1).amax(-1).min() > confidence:
                break
        return outputs


torch.manual_seed(64)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
net = EarlyExitNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(5):
    for batch in torch.randperm(len(train)).split(60):
        outputs = net(x[train[batch]])
        losses = [F.cross_entropy(o, y[train[batch]]) for o in outputs]
        loss = sum(weight * part for weight, part in zip((0.1, 0.3, 1.0), losses))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {[round(part.item(), 3) for part in losses]}")
with torch.no_grad():
    used, right = [0, 0, 0], 0
    for i in test.tolist():
        outputs = net(x[i : i + 1], confidence=0.9)
        used[len(outputs) - 1] += 1
        right += int(outputs[-1].argmax() == y[i])
print(f"test accuracy {right / len(test):.3f}, samples leaving at each exit {used}")
assert right / len(test) >= 0.89, right
