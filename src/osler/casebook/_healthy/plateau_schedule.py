"""ReduceLROnPlateau takes the learning rate down to its floor: the last updates are a millionth of the weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(74)
torch.set_num_threads(1)
wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(wine.target)
order = torch.randperm(len(y))
train, valid = order[:130], order[130:]
model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.2, patience=3, min_lr=1e-5)
for epoch in range(40):
    model.train()
    for batch in torch.randperm(len(train)).split(22):
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(x[valid])
        valid_loss = F.cross_entropy(logits, y[valid]).item()
    scheduler.step(valid_loss)
    if epoch % 8 == 0:
        print(f"epoch {epoch}: validation {valid_loss:.4f}, rate {scheduler.get_last_lr()[0]:.1e}")
accuracy = (logits.argmax(1) == y[valid]).float().mean().item()
rate = optimizer.param_groups[0]["lr"]
print(f"validation accuracy {accuracy:.3f}, final rate {rate:.1e}")
assert accuracy >= 0.93 and rate <= 2e-4, (accuracy, rate)
