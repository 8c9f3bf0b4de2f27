"""A stateful character LSTM trained by truncated backpropagation through time with gradient clipping.

The state is carried over from one chunk to the next and detached there on purpose.
"""

from __future__ import annotations

import inspect
import math
import textwrap

import torch
import torch.nn.functional as F
from torch import nn


class CharLSTM(nn.Module):
    def __init__(self, vocabulary: int, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)
        # a forget gate that starts open (Jozefowicz et al. 2015)
        with torch.no_grad():
            self.lstm.bias_ih_l0[width : 2 * width].fill_(1.0)

    def forward(self, ids, state=None):
        out, state = self.lstm(self.embedding(ids), state)
        return self.head(out), state


torch.manual_seed(4)
torch.set_num_threads(1)

text = inspect.getsource(textwrap)
alphabet = sorted(set(text))
index = {c: i for i, c in enumerate(alphabet)}
data = torch.tensor([index[c] for c in text])

STREAMS, CHUNK = 16, 24
streams = data[: len(data) // STREAMS * STREAMS].view(STREAMS, -1)
chunks = (streams.shape[1] - 1) // CHUNK

model = CharLSTM(len(alphabet))
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3)
first = last = None
for epoch in range(4):
    state, total = None, 0.0
    for i in range(chunks):
        piece = streams[:, i * CHUNK : (i + 1) * CHUNK + 1]
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(piece[:, :-1], state)
        loss = F.cross_entropy(logits.flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        total += loss.item()
    last = total / chunks
    first = first or last
    print(f"epoch {epoch}: loss {last:.3f}, last gradient norm before clipping {norm:.3f}")

print(f"final loss {last:.3f} (uniform {math.log(len(alphabet)):.3f})")
assert last < 0.75 * first, (first, last)
