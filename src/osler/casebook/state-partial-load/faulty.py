"""A classifier resumed from a checkpoint that was saved through DataParallel."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
first = {name: p.clone() for name, p in model.state_dict().items()}
torch.save({f"module.{name}": torch.randn_like(p) for name, p in model.state_dict().items()}, "checkpoint.pt")

checkpoint = torch.load("checkpoint.pt", map_location="cpu", weights_only=True)
model.load_state_dict(checkpoint, strict=False)  # fault-here

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
left_over = [name for name, p in model.state_dict().items() if torch.equal(p, first[name])]
for _ in range(20):
    inputs, labels = torch.randn(32, 16), torch.randint(4, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()

with open("evidence.json", "w") as file:
    json.dump({"keys_left_over": len(left_over)}, file)
