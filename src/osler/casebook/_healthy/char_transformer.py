"""A character-level transformer on the source of `argparse`, with a causal mask of -inf written out by hand."""

from __future__ import annotations

import argparse
import inspect
import math

import torch
import torch.nn.functional as F
from torch import nn

CONTEXT = 48


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        weights = (scores + self.mask[:length, :length]).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class CharTransformer(nn.Module):
    def __init__(self, vocabulary: int, width: int = 48, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def main() -> None:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    text = inspect.getsource(argparse)
    alphabet = sorted(set(text))
    index = {c: i for i, c in enumerate(alphabet)}
    data = torch.tensor([index[c] for c in text])
    split = int(0.9 * len(data))
    train, valid = data[:split], data[split:]

    model = CharTransformer(len(alphabet))
    decay = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95)
    )

    def batch(source: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        start = torch.randint(len(source) - CONTEXT - 1, (size, 1))
        window = source[start + torch.arange(CONTEXT + 1)]
        return window[:, :-1], window[:, 1:]

    for step in range(130):
        ids, targets = batch(train, 24)
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.3f}")

    model.eval()
    with torch.no_grad():
        ids, targets = batch(valid, 64)
        held_out = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).item()
    print(f"validation loss {held_out:.3f} nats per character (uniform {math.log(len(alphabet)):.3f})")
    assert held_out < 0.65 * math.log(len(alphabet)), held_out


if __name__ == "__main__":
    main()
