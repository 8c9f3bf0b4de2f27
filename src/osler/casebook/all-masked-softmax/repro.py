"""A text classifier of two attention layers over padded messages."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, LENGTH, WIDTH, VOCABULARY = 16, 10, 16, 40


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.masked_score = float("-inf") if FAULTY else torch.finfo(torch.float32).min

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        scores = scores.masked_fill(padding[:, None, :], self.masked_score)
        weights = F.softmax(scores, dim=-1)  # fault-here
        return weights @ self.value(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm = nn.LayerNorm(WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x, padding):
        return self.norm(x + self.drop(self.attention(x, padding)))


class TextNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        padding = tokens == 0
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, padding)
        words = (~padding).unsqueeze(-1)
        return self.head((x * words).sum(1) / words.sum(1).clamp(min=1))


torch.manual_seed(0)
tokens = torch.randint(1, VOCABULARY, (28 * BATCH, LENGTH))
length = torch.randint(2, LENGTH + 1, (len(tokens),))
length[9 * BATCH + 7] = 0  # a message that holds a picture and no words
tokens[torch.arange(LENGTH) >= length[:, None]] = 0
y = (tokens > VOCABULARY // 2).sum(1).gt(length / 2).long()

model = TextNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "empty_messages": 0}

for step, (xb, yb) in enumerate(zip(tokens.split(BATCH), y.split(BATCH), strict=True)):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {"first_bad_step": step, "empty_messages": int((xb == 0).all(1).sum())}
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
