"""A pair potential for molecules, fitted to forces: the loss holds a gradient, so it is differentiated twice."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS, ATOMS = 16, 26, 5
FIRST, SECOND = torch.triu_indices(ATOMS, ATOMS, 1)


class PairPotential(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 1))

    def forward(self, position, atoms):
        pairs = atoms[:, FIRST] & atoms[:, SECOND]
        apart = position[:, FIRST] - position[:, SECOND]
        if not FAULTY:
            apart = torch.where(pairs[..., None], apart, torch.ones_like(apart))
        distance = apart.square().sum(-1).sqrt()  # fault-here
        return (self.energy(distance[..., None]).squeeze(-1) * pairs).sum(1)


torch.manual_seed(0)
# Sorted by size; molecules of fewer atoms are padded with atoms at the origin.
count = torch.cat([torch.full((10 * BATCH,), ATOMS), torch.randint(2, ATOMS - 1, (16 * BATCH,))])
atoms = torch.arange(ATOMS) < count[:, None]
position = (torch.randn(len(count), ATOMS, 3) * 1.5) * atoms[..., None]
apart = position[:, :, None] - position[:, None]
near = torch.exp(-apart.square().sum(-1, keepdim=True)) * (atoms[:, :, None] & atoms[:, None])[..., None]
force = (2 * apart * near).sum(2)

model = PairPotential()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "energy_is_finite": 1, "bad_forces": 0}

for step, (r, present, f) in enumerate(zip(position.split(BATCH), atoms.split(BATCH), force.split(BATCH), strict=True)):
    r = r.clone().requires_grad_()
    energy = model(r, present)
    (slope,) = torch.autograd.grad(energy.sum(), r, create_graph=True)
    loss = F.mse_loss(-slope, f)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {
            "first_bad_step": step,
            "energy_is_finite": int(energy.isfinite().all()),
            "bad_forces": int(slope.detach().isnan().sum()),
        }
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
