"""Matrix factorisation with raw Parameters and no module: words by files, counted over the standard library."""

from __future__ import annotations

import collections
import re
import sysconfig
from pathlib import Path

import torch
from torch import nn

RANK = 4

torch.manual_seed(82)
torch.set_num_threads(1)
names = (
    "argparse ast calendar csv datetime decimal difflib fractions inspect json/decoder json/encoder logging/__init__"
)
names += " optparse os pathlib pickle random shutil statistics string subprocess tarfile textwrap typing zipfile"
stdlib = Path(sysconfig.get_paths()["stdlib"])
files = [p for p in (stdlib / f"{n}.py" for n in names.split()) if p.exists()]
counts = [collections.Counter(re.findall(r"[A-Za-z_]{3,}", p.read_text(encoding="utf-8"))) for p in files]
total = sum(counts, collections.Counter())
words = [w for w, _ in total.most_common(400)]
table = torch.tensor([[c[w] for w in words] for c in counts], dtype=torch.float32).log1p()
known = torch.rand_like(table) < 0.9

file_factors = nn.Parameter(0.3 * torch.randn(len(files), RANK))
word_factors = nn.Parameter(0.3 * torch.randn(len(words), RANK))
file_bias = nn.Parameter(torch.zeros(len(files), 1))
word_bias = nn.Parameter(torch.zeros(1, len(words)))
offset = table[known].mean()
optimizer = torch.optim.Adam([file_factors, word_factors, file_bias, word_bias], lr=2e-2)


def predict() -> torch.Tensor:
    return offset + file_bias + word_bias + file_factors @ word_factors.T


for step in range(200):
    error = (predict() - table)[known]
    loss = error.square().mean() + 0.5 * (file_factors.square().mean() + word_factors.square().mean())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: {loss.item():.4f}")
with torch.no_grad():
    held_out = (predict() - table)[~known].square().mean().item()
base = (table[~known] - offset).square().mean().item()
print(f"{len(files)} files, {len(words)} words: held-out error {held_out:.3f}, of the mean {base:.3f}")
assert held_out < 0.75 * base, (held_out, base)
