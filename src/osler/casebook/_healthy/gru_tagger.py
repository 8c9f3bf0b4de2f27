"""A bidirectional GRU that colours source code: each character of a line is code, string or comment.

Lines have different lengths: the batch is packed, padding has the index 0 (`padding_idx`) and the label -100.
"""

from __future__ import annotations

import inspect
import io
import shutil
import tokenize

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

MAX_LENGTH = 60


def labelled_lines(source: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    lines = source.splitlines(keepends=True)
    marks = [[0] * len(line) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = {tokenize.STRING: 1, tokenize.COMMENT: 2}.get(token.type)
        if kind and token.start[0] == token.end[0]:
            row = token.start[0] - 1
            marks[row][token.start[1] : token.end[1]] = [kind] * (token.end[1] - token.start[1])
    result = []
    for line, mark in zip(lines, marks):
        text = line.rstrip("\n")[:MAX_LENGTH]
        if ("'" in text or "#" in text) and '"""' not in text:
            ids = torch.tensor([min(ord(c), 127) for c in text])
            result.append((ids, torch.tensor(mark[: len(text)])))
    return result


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(128, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, 3)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.head(out)


def collate(samples):
    ids, tags = zip(*samples)
    lengths = torch.tensor([len(i) for i in ids])
    return pad_sequence(ids, True, 0), pad_sequence(tags, True, -100), lengths


def main() -> None:
    torch.manual_seed(5)
    torch.set_num_threads(1)
    samples = labelled_lines(inspect.getsource(shutil) + inspect.getsource(tokenize) + inspect.getsource(inspect))
    generator = torch.Generator().manual_seed(5)
    order = torch.randperm(len(samples), generator=generator).tolist()
    held_out, train = order[:60], order[60:]
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for step in range(110):
        picked = torch.randint(len(train), (24,), generator=generator).tolist()
        ids, tags, lengths = collate([samples[train[i]] for i in picked])
        logits = model(ids, lengths)
        loss = F.cross_entropy(logits.transpose(1, 2), tags, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")

    model.eval()
    with torch.no_grad():
        ids, tags, lengths = collate([samples[i] for i in held_out])
        predicted = model(ids, lengths).argmax(-1)
    real = tags != -100
    accuracy = (predicted[real] == tags[real]).float().mean().item()
    print(f"accuracy per character {accuracy:.3f}")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
