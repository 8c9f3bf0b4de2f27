"""One model, two optimizers: SparseAdam for the sparse embedding, AdamW for the dense layers, both stepped every
batch.
"""

from __future__ import annotations

import collections
import inspect
import random
import re
import statistics
import tarfile

import torch
import torch.nn.functional as F
from torch import nn


class NextToken(nn.Module):
    """Predicts a token from the three before it (Bengio et al. 2003)."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 24, sparse=True)
        self.dense = nn.Sequential(nn.Linear(72, 64), nn.Tanh(), nn.Linear(64, vocabulary))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.dense(self.embedding(ids).flatten(1))


def main() -> None:
    random.seed(107)
    torch.manual_seed(107)
    torch.set_num_threads(1)
    tokens = re.findall(r"\w+|[^\w\s]", inspect.getsource(tarfile) + inspect.getsource(statistics))
    words = ["<rare>"] + [w for w, n in collections.Counter(tokens).most_common(600) if n > 1]
    index = {w: i for i, w in enumerate(words)}
    ids = torch.tensor([index.get(t, 0) for t in tokens])
    contexts = ids.unfold(0, 4, 1)
    model = NextToken(len(words))
    sparse = torch.optim.SparseAdam(model.embedding.parameters(), lr=1e-2)
    dense = torch.optim.AdamW(model.dense.parameters(), lr=4e-3)
    losses = []
    for step in range(160):
        rows = contexts[torch.randint(len(contexts), (128,))]
        loss = F.cross_entropy(model(rows[:, :3]), rows[:, 3])
        for optimizer in (sparse, dense):
            optimizer.zero_grad()
        loss.backward()
        for optimizer in (sparse, dense):
            optimizer.step()
        losses.append(loss.item())
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.3f}")
    end = sum(losses[-10:]) / 10
    print(f"{len(words)} words, loss {losses[0]:.3f} -> {end:.3f}")
    assert end < 0.65 * losses[0], (losses[0], end)


if __name__ == "__main__":
    main()
