"""A word-level language model whose output layer is its input embedding; most rows of the vocabulary are rare."""

from __future__ import annotations

import argparse
import collections
import inspect
import math
import re

import torch
import torch.nn.functional as F
from torch import nn


class TiedLM(nn.Module):
    def __init__(self, vocabulary: int, width: int = 48) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.decoder = nn.Linear(width, vocabulary)
        self.decoder.weight = self.embedding.weight
        nn.init.zeros_(self.decoder.bias)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        out, _ = self.rnn(self.drop(self.embedding(ids)))
        return self.decoder(self.drop(out))


torch.manual_seed(45)
torch.set_num_threads(1)
tokens = re.findall(r"\w+|[^\w\s]|\n", inspect.getsource(argparse))
common = [t for t, n in collections.Counter(tokens).most_common() if n >= 2]
index = {t: i + 1 for i, t in enumerate(common)}
data = torch.tensor([index.get(t, 0) for t in tokens])
model = TiedLM(len(common) + 1)
assert len({id(p) for p in model.parameters()}) == len(list(model.parameters()))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
losses = []
for step in range(120):
    start = torch.randint(len(data) - 25, (16, 1))
    window = data[start + torch.arange(25)]
    logits = model(window[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    if step % 20 == 0:
        print(f"step {step}: perplexity {math.exp(loss.item()):.1f}")
end = sum(losses[-10:]) / 10
print(f"{len(common) + 1} words, perplexity {math.exp(losses[0]):.0f} -> {math.exp(end):.1f}")
assert end < 0.65 * losses[0], (losses[0], end)
