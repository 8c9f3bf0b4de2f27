"""A small regression; the seed counts up with the epoch, so that an epoch can be repeated and differs from the others."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6

torch.manual_seed(3)
torch.set_num_threads(1)
rows = TensorDataset(torch.arange(64.0).reshape(64, 1) / 64, torch.randn(64, 1))
loader = DataLoader(rows, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
orders = []
for epoch in range(EPOCHS):
    torch.manual_seed(epoch)
    order = []
    for x, y in loader:
        order += x.flatten().tolist()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    orders.append(order)

with open("evidence.json", "w") as file:
    json.dump({"epochs": EPOCHS, "epochs_with_the_first_order": sum(o == orders[0] for o in orders)}, file)
