"""A classifier with dropout that is validated after each epoch and goes back into train mode for the next."""

import json

import torch
from torch import nn

EPOCHS = 5

torch.manual_seed(0)
torch.set_num_threads(1)
x, x_val = torch.randn(128, 8), torch.randn(64, 8)
y, y_val = (x[:, 0] > 0).long(), (x_val[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train(model, optimizer):
    for xb, yb in zip(x.split(32), y.split(32), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()


def validate(model):
    model.eval()
    with torch.no_grad():
        return nn.functional.cross_entropy(model(x_val), y_val).item()


with_dropout, losses = 0, []
for _ in range(EPOCHS):
    model.train()
    with_dropout += model.training
    train(model, optimizer)
    losses.append(validate(model))

evidence = {"epochs": EPOCHS, "epochs_with_dropout": with_dropout}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
