"""A classifier of ten classes that returns probabilities, to a loss that applies softmax itself."""

import json

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(10, 32), nn.Linear(32, 10)

    def forward(self, x):
        return F.softmax(self.head(torch.relu(self.body(x))), dim=1)


torch.manual_seed(0)
torch.set_num_threads(1)
y = torch.randint(10, (256,))
x = F.one_hot(y, 10).float() + 0.1 * torch.randn(256, 10)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(300):
    optimizer.zero_grad()
    out = model(x)
    loss = F.cross_entropy(out, y)  # fault-here
    loss.backward()
    optimizer.step()

accuracy = (out.argmax(1) == y).float().mean().item()
evidence = {"loss": loss.item(), "accuracy": accuracy}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
