"""A regression whose running loss keeps the graph of every batch."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 1)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
total = torch.zeros(())
passes = 0
for xb, yb in zip(x.split(4), y.split(4), strict=True):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(xb), yb)
    loss.backward()
    optimizer.step()
    total += loss  # fault-here
    passes += 1

# The losses whose graph can still be reached from the sum.
held, queue, seen = 0, [total.grad_fn], set()
while queue:
    node = queue.pop()
    if node is None or node in seen:
        continue
    seen.add(node)
    held += node.name().startswith("MseLoss")
    queue += [following for following, _ in node.next_functions]

evidence = {"passes": passes, "losses_held": held}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
