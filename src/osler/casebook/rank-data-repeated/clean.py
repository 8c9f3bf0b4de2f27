"""The part of one of two ranks, over several epochs."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
rows = TensorDataset(torch.arange(32.0).reshape(32, 1), torch.randn(32, 1))
sampler = DistributedSampler(rows, num_replicas=2, rank=0, shuffle=True)
loader = DataLoader(rows, batch_size=4, sampler=sampler)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
orders = set()
for epoch in range(5):
    sampler.set_epoch(epoch)
    order = []
    for x, y in loader:
        order += x.flatten().tolist()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    orders.add(tuple(order))
    print(f"epoch {epoch}")

with open("evidence.json", "w") as file:
    json.dump({"orders_seen": len(orders)}, file)
