"""A small character transformer trained on the project's own documentation (docs/*.md); nothing is wrong with it.

python examples/charlm.py
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 200
BATCH = 16
CONTEXT = 48
WIDTH = 48
HEADS = 4
BLOCKS = 2
LR = 3e-3
WARMUP = 30


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each behind a LayerNorm and beside a residual path."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm_2(x))


class CharTransformer(nn.Module):
    """Characters (batch, length) to logits (batch, length, alphabet)."""

    def __init__(self, alphabet: int) -> None:
        super().__init__()
        self.token = nn.Embedding(alphabet, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, alphabet)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        x = self.token(characters) + self.position(torch.arange(characters.shape[1]))
        return self.head(self.norm(self.blocks(x)))


@torch.no_grad()
def generate(model: CharTransformer, text: list[int], length: int) -> list[int]:
    """Go on with `text` for `length` characters."""
    model.eval()
    for _ in range(length):
        logits = model(torch.tensor([text[-CONTEXT:]]))[0, -1]
        text = [*text, int(torch.multinomial((logits / 0.7).softmax(0), 1))]
    model.train()
    return text


def main() -> None:
    torch.manual_seed(0)
    docs = sorted((Path(__file__).resolve().parent.parent / "docs").glob("*.md"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in docs)
    alphabet = sorted(set(text))
    code = {character: i for i, character in enumerate(alphabet)}
    data = torch.tensor([code[character] for character in text])
    held_out = len(data) // 10
    train, test = data[:-held_out], data[-held_out:]

    def batch(source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.randint(len(source) - CONTEXT - 1, (BATCH,)).tolist()
        windows = torch.stack([source[i : i + CONTEXT + 1] for i in starts])
        return windows[:, :-1], windows[:, 1:]

    model = CharTransformer(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, 0.5 * (1 + math.cos(math.pi * step / STEPS)))
    )

    for step in range(STEPS):
        x, y = batch(train)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == STEPS - 1:
            with torch.no_grad():
                x, y = batch(test)
                held = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            print(f"step {step:3}  loss {loss.item():.3f}  held out {held.item():.3f}")

    prompt = [code[character] for character in "A gradient "]
    print("".join(alphabet[i] for i in generate(model, prompt, 80)))


if __name__ == "__main__":
    main()
