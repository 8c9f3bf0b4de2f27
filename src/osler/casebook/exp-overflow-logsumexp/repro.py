"""Contrastive learning (InfoNCE) on two recordings of each sound, with a sharp temperature."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS, TEMPERATURE = 32, 26, 0.01

torch.manual_seed(0)
sound = torch.randn(STEPS * BATCH, 32)
first = sound + torch.randn(len(sound), 32)
second = sound + torch.randn(len(sound), 32)
copied = 9 * BATCH + 6
second[copied] = first[copied]  # the second recording was lost, someone copied the first: cosine 1, over 0.01 is 100

model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
evidence = {"first_bad_step": -1, "beyond_exp": 0}

for step, (a, b) in enumerate(zip(first.split(BATCH), second.split(BATCH), strict=True)):
    similar = F.normalize(model(a), dim=1) @ F.normalize(model(b), dim=1).T / TEMPERATURE
    if FAULTY:
        normaliser = torch.exp(similar).sum(1).log()  # fault-here
    else:
        normaliser = torch.logsumexp(similar, 1)
    loss = (normaliser - similar.diagonal()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "beyond_exp": int((similar.detach() > 88.7228).sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
