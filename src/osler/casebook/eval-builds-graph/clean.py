"""An evaluation that saves nothing."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
batches = list(torch.randn(256, 8).split(32))
saved = []


def keep(tensor):
    saved.append(tensor.numel())
    return tensor


model.eval()
correct = 0
with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
    for xb in batches:
        correct += (model(xb).argmax(1) == 1).sum().item()

evidence = {"elements_saved_for_a_backward": sum(saved)}

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
