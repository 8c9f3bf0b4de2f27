"""Questions read the documents that a search found for them, through torch's own multi-head attention."""

import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, DOCUMENTS, WIDTH = 16, 6, 16


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, question, documents, missing):
        if not FAULTY:
            # Where nothing was found, let it read the (zero) padding: softmax needs one entry.
            missing = missing & ~missing.all(1, keepdim=True)
        read, weights = self.attention(question, documents, documents, key_padding_mask=missing)  # fault-here
        return question + read, weights


class Answerer(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = Reader()
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3))

    def forward(self, question, documents, missing):
        read, weights = self.reader(question.unsqueeze(1), documents, missing)
        return self.head(read.squeeze(1)), weights


torch.manual_seed(0)
question = torch.randn(26 * BATCH, WIDTH)
found = torch.randint(1, DOCUMENTS + 1, (len(question),))
found[8 * BATCH + 3] = 0  # a question for which the search came back with nothing
missing = torch.arange(DOCUMENTS) >= found[:, None]
documents = torch.randn(len(question), DOCUMENTS, WIDTH) * ~missing[..., None]
y = question[:, :3].argmax(1)

model = Answerer()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
evidence = {"first_bad_step": -1, "questions_without_documents": 0, "bad_weights": 0}

for step, (q, d, m, yb) in enumerate(
    zip(question.split(BATCH), documents.split(BATCH), missing.split(BATCH), y.split(BATCH), strict=True)
):
    logits, weights = model(q, d, m)
    loss = F.cross_entropy(logits, yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if evidence["first_bad_step"] < 0 and not loss.isfinite():
        evidence = {
            "first_bad_step": step,
            "questions_without_documents": int(m.all(1).sum()),
            "bad_weights": int(weights.detach().isnan().sum()),
        }
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
