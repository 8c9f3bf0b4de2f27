"""Strips of two to four digits read by a convolution and CTC: log-probabilities of -inf and clean zeros inside the
loss.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

BLANK, LONGEST = 10, 4


class Reader(nn.Module):
    """Image (batch, 1, 8, 32) to log-probabilities (time 16, batch, 11)."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 48, (4, 5), padding=(0, 2)), nn.BatchNorm2d(48), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(48, 11)

    def forward(self, strip: torch.Tensor) -> torch.Tensor:
        h = self.columns(strip).squeeze(2).permute(2, 0, 1)
        return self.head(h).log_softmax(-1)


def strips(images: torch.Tensor, labels: torch.Tensor, count: int):
    lengths = torch.randint(2, LONGEST + 1, (count,))
    rows = torch.randint(len(labels), (count, LONGEST))
    used = torch.arange(LONGEST) < lengths.unsqueeze(1)
    strip = (images[rows] * used[..., None, None]).permute(0, 2, 1, 3).reshape(count, 1, 8, 8 * LONGEST)
    return strip, torch.where(used, labels[rows], 0), lengths


def read(log_probs: torch.Tensor) -> list[list[int]]:
    best = log_probs.argmax(-1).T.tolist()
    return [[a for a, b in zip(row, [BLANK, *row]) if a not in (b, BLANK)] for row in best]


def main() -> None:
    torch.manual_seed(91)
    torch.set_num_threads(1)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(170):
        strip, targets, lengths = strips(images[:1400], labels[:1400], 48)
        log_probs = model(strip)
        time = torch.full((48,), len(log_probs))
        loss = F.ctc_loss(log_probs, targets, time, lengths, blank=BLANK, zero_infinity=True)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 34 == 0:
            print(f"step {step}: {loss.item():.4f}")
    model.eval()
    strip, targets, lengths = strips(images[1400:], labels[1400:], 300)
    with torch.no_grad():
        readings = read(model(strip))
    right = sum(r == t[:n] for r, t, n in zip(readings, targets.tolist(), lengths.tolist()))
    print(f"strips read without a mistake: {right} of 300")
    assert right >= 120, right


if __name__ == "__main__":
    main()
