"""Mixed precision on the CPU: forward in bfloat16, no loss scaling (bfloat16 has the range of float32)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1440], order[1440:]


class MLPMixerBlock(nn.Module):
    """Mixes over the eight rows, then over the features of a row."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.rows = nn.Sequential(nn.Linear(rows, 16), nn.GELU(), nn.Linear(16, rows))
        self.features = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        h = h + self.rows(self.norm1(h).transpose(1, 2)).transpose(1, 2)
        return h + self.features(self.norm2(h))


model = nn.Sequential(nn.Linear(8, 32), MLPMixerBlock(8, 32), MLPMixerBlock(8, 32), nn.Flatten(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(4):
    for batch in torch.randperm(len(train)).split(48):
        index = train[batch]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[index].view(-1, 8, 8))
            loss = F.cross_entropy(logits.float(), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f} ({logits.dtype})")

with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
    accuracy = (model(x[test].view(-1, 8, 8)).argmax(1) == y[test]).float().mean().item()
print(f"test accuracy {accuracy:.3f}")
assert accuracy >= 0.9, accuracy
