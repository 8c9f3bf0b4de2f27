"""Three sigmoid layers that do learn: Glorot weights with gain 4 (Glorot & Bengio 2010) and centred inputs.

Early layers get smaller gradients than late ones, as sigmoids make them, but they move.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(94)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
x = (x - x.mean(0)) / (x.std(0) + 1)
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]
layers: list[nn.Module] = []
for inputs, outputs in ((64, 64), (64, 64), (64, 64)):
    linear = nn.Linear(inputs, outputs)
    nn.init.xavier_normal_(linear.weight, gain=2.0 if not layers else 4.0)
    with torch.no_grad():
        linear.bias.copy_(-0.5 * linear.weight.sum(1) if layers else torch.zeros(outputs))
    layers += [linear, nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(64, 10))
start = model[0].weight.detach().clone()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    for batch in torch.randperm(len(train)).split(48):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        loss.backward()
        optimizer.step()
    norms = [layer.weight.grad.norm().item() for layer in model if isinstance(layer, nn.Linear)]
    print(f"epoch {epoch}: {loss.item():.4f}, gradient norms {[f'{n:.1e}' for n in norms]}")
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
moved = ((model[0].weight - start).norm() / start.norm()).item()
print(f"test accuracy {accuracy:.3f}, the first layer moved by {moved:.2f} of its norm")
assert accuracy >= 0.9 and moved > 0.05, (accuracy, moved)
