"""A one-dimensional Fourier neural operator with complex weights: it learns to diffuse a random profile (heat
equation).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

POINTS, MODES = 64, 12


class SpectralConv(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, channels, MODES, dtype=torch.cfloat) / channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.fft.rfft(x)
        low = torch.einsum("bim,iom->bom", spectrum[..., :MODES], self.weight)
        return torch.fft.irfft(F.pad(low, (0, spectrum.shape[-1] - MODES)), n=x.shape[-1])


class FNO(nn.Module):
    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.lift = nn.Conv1d(1, channels, 1)
        self.spectral = nn.ModuleList(SpectralConv(channels) for _ in range(2))
        self.local = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(2))
        self.project = nn.Conv1d(channels, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.lift(x)
        for spectral, local in zip(self.spectral, self.local):
            h = F.gelu(spectral(h) + local(h))
        return self.project(h)


def profiles(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random periodic profiles and what the heat equation makes of them: mode k falls by exp(-0.05 k²)."""
    k = torch.arange(1, 9.0)
    spectrum = torch.zeros(count, POINTS // 2 + 1, dtype=torch.cfloat)
    phase = 2 * math.pi * torch.rand(count, 8)
    spectrum[:, 1:9] = POINTS / 4 * torch.polar(torch.rand(count, 8) / k.sqrt(), phase)
    decay = torch.ones(POINTS // 2 + 1)
    decay[1:9] = torch.exp(-0.05 * k**2)
    return torch.fft.irfft(spectrum, n=POINTS).unsqueeze(1), torch.fft.irfft(spectrum * decay, n=POINTS).unsqueeze(1)


torch.manual_seed(88)
torch.set_num_threads(1)
model = FNO()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    before, after = profiles(32)
    loss = F.mse_loss(model(before), after)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step}: {loss.item():.5f}")
with torch.no_grad():
    before, after = profiles(200)
    relative = (F.mse_loss(model(before), after) / after.var()).item()
print(f"unexplained variance {relative:.4f}")
assert relative < 0.05, relative
