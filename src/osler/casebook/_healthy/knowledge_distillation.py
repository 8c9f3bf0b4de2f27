"""A small student learns from a larger teacher's soft targets at temperature 4; the teacher runs under no_grad."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

TEMPERATURE = 4.0

torch.manual_seed(29)
torch.set_num_threads(1)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(y))
train, test = order[:1400], order[1400:]

teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 10))
student = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def train_teacher() -> None:
    optimizer = torch.optim.Adam(teacher.parameters(), lr=4e-3)
    for _ in range(3):
        for batch in torch.randperm(len(train)).split(50):
            optimizer.zero_grad()
            F.cross_entropy(teacher(x[train[batch]]), y[train[batch]]).backward()
            optimizer.step()
    teacher.eval()


def distil() -> None:
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    for epoch in range(5):
        for batch in torch.randperm(len(train)).split(50):
            inputs, labels = x[train[batch]], y[train[batch]]
            with torch.no_grad():
                soft = F.softmax(teacher(inputs) / TEMPERATURE, dim=1)
            logits = student(inputs)
            log_p = F.log_softmax(logits / TEMPERATURE, dim=1)
            loss = TEMPERATURE**2 * F.kl_div(log_p, soft, reduction="batchmean") + 0.3 * F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    return (model(x[test]).argmax(1) == y[test]).float().mean().item()


train_teacher()
distil()
print(f"teacher {accuracy(teacher):.3f}, student {accuracy(student):.3f}")
assert accuracy(student) >= 0.88, accuracy(student)
