"""A small denoising diffusion model with an EMA copy: the loss plateaus at the noise it cannot know, which is no
fault.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

STEPS = 50


class Denoiser(nn.Module):
    def __init__(self, width: int = 160) -> None:
        super().__init__()
        self.time = nn.Embedding(STEPS, 32)
        self.inner = nn.Linear(64 + 32, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(2)
        )
        self.out = nn.Linear(width, 64)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        h = F.silu(self.inner(torch.cat([x, self.time(t)], dim=1)))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


torch.manual_seed(97)
torch.set_num_threads(1)
data = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
beta = torch.linspace(1e-3, 0.12, STEPS)
alpha_bar = (1 - beta).cumprod(0)
model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
losses = []
for step in range(350):
    x = data[torch.randint(len(data), (96,))]
    t = torch.randint(STEPS, (96,))
    noise = torch.randn_like(x)
    noisy = alpha_bar[t].sqrt().unsqueeze(1) * x + (1 - alpha_bar[t]).sqrt().unsqueeze(1) * noise
    loss = F.mse_loss(model(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.02)
    losses.append(loss.item())
    if step % 70 == 0:
        print(f"step {step}: {loss.item():.4f}")

with torch.inference_mode():
    x = torch.randn(256, 64)
    for t in reversed(range(STEPS)):
        guess = average(x, torch.full((256,), t))
        x = (x - beta[t] / (1 - alpha_bar[t]).sqrt() * guess) / (1 - beta[t]).sqrt()
        if t:
            x = x + beta[t].sqrt() * torch.randn_like(x)
distance = (x.mean(0) - data.mean(0)).norm().item()
end = sum(losses[-20:]) / 20
print(
    f"loss {losses[0]:.3f} -> {end:.3f}; distance of the mean image {distance:.2f} (of noise {data.mean(0).norm():.2f})"
)
assert end < 0.4 and distance < 0.4 * data.mean(0).norm(), (end, distance)
