"""A Perceiver: learnt latents, the same for every sample, ask the pixels through cross-attention with its own key bias.

The latents and their queries are equal over the whole batch until the attention mixes in the image. Softmax ignores
what is added to all scores, so the key bias gets a gradient of rounding size.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm_latent, self.norm_input = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, latents: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        inputs = self.norm_input(inputs)
        q, k, v = self.query(self.norm_latent(latents)), self.key(inputs), self.value(inputs)
        weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
        return latents + self.out(weights @ v)


class Perceiver(nn.Module):
    def __init__(self, width: int = 32, latents: int = 8) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, width) * 0.3)
        self.position = nn.Embedding(64, width)
        self.pixel = nn.Linear(1, width)
        self.attend = CrossAttention(width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(latents * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.pixel(x.unsqueeze(-1)) + self.position(torch.arange(64))
        latents = self.latents.expand(len(x), -1, -1)
        latents = self.attend(latents, tokens)
        return self.head((latents + self.mlp(latents)).flatten(1))


def main() -> None:
    torch.manual_seed(102)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    model = Perceiver()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    for epoch in range(7):
        for batch in torch.randperm(len(train)).split(48):
            loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}, key bias gradient {model.attend.key.bias.grad.norm().item():.1e}")
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"test accuracy {accuracy:.3f}")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
