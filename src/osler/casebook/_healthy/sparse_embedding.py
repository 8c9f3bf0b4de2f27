"""Skip-gram with negative sampling over the tokens of the standard library: sparse gradients and SparseAdam."""

from __future__ import annotations

import argparse
import collections
import inspect
import logging
import re

import torch
import torch.nn.functional as F
from torch import nn


class SkipGram(nn.Module):
    def __init__(self, vocabulary: int, width: int = 32) -> None:
        super().__init__()
        self.centre = nn.Embedding(vocabulary, width, sparse=True)
        self.context = nn.Embedding(vocabulary, width, sparse=True)
        nn.init.uniform_(self.centre.weight, -0.5 / width, 0.5 / width)
        nn.init.zeros_(self.context.weight)  # as word2vec does

    def forward(self, centre: torch.Tensor, context: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        c = self.centre(centre)
        positive = (c * self.context(context)).sum(-1)
        others = torch.einsum("bd,bkd->bk", c, self.context(negative))
        return -(F.logsigmoid(positive) + F.logsigmoid(-others).sum(-1)).mean()


torch.manual_seed(16)
torch.set_num_threads(1)
tokens = re.findall(r"\w+|[^\w\s]", inspect.getsource(argparse) + inspect.getsource(logging))
counts = collections.Counter(tokens)
words = [w for w, n in counts.most_common() if n >= 3]
index = {w: i for i, w in enumerate(words)}
ids = torch.tensor([index[w] for w in tokens if w in index])
noise = torch.tensor([counts[w] for w in words], dtype=torch.float32) ** 0.75

model = SkipGram(len(words))
optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-2)
losses = []
for step in range(200):
    position = torch.randint(2, len(ids) - 2, (512,))
    offset = torch.tensor([-2, -1, 1, 2])[torch.randint(4, (512,))]
    negative = torch.multinomial(noise, 512 * 5, replacement=True).view(512, 5)
    loss = model(ids[position], ids[position + offset], negative)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 40 == 0:
        print(f"step {step}: {loss.item():.3f}, rows touched {model.centre.weight.grad.coalesce().indices().shape[1]}")

start, end = losses[0], sum(losses[-10:]) / 10
print(f"{len(words)} words, loss {start:.3f} -> {end:.3f}")
assert end < 0.7 * start, (start, end)
