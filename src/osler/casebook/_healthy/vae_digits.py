"""A variational autoencoder: reparametrised sample, KL term with a warm-up from weight 0."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class VAE(nn.Module):
    def __init__(self, latent: int = 8) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 64), nn.SiLU())
        self.mean = nn.Linear(64, latent)
        self.log_variance = nn.Linear(64, latent)
        # start with a posterior of unit variance, whatever the input
        nn.init.zeros_(self.log_variance.weight)
        nn.init.zeros_(self.log_variance.bias)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.SiLU(), nn.Linear(128, 64))

    def forward(self, x):
        hidden = self.trunk(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden).clamp(-8, 8)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


torch.manual_seed(10)
torch.set_num_threads(1)
data = torch.tensor(load_digits().data, dtype=torch.float32) / 16
train, test = data[:1500], data[1500:]
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def elbo_terms(x):
    logits, mean, log_variance = model(x)
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
    return reconstruction, kl


with torch.no_grad():
    start = sum(t.item() for t in elbo_terms(test))
steps = 0
for epoch in range(8):
    for batch in torch.randperm(len(train)).split(60):
        weight = min(1.0, steps / 60)  # exactly 0 on the first step
        reconstruction, kl = elbo_terms(train[batch])
        loss = reconstruction + weight * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"epoch {epoch}: reconstruction {reconstruction.item():.2f}, KL {kl.item():.2f}, weight {weight:.2f}")
with torch.no_grad():
    end = sum(t.item() for t in elbo_terms(test))
print(f"negative ELBO on test data {start:.2f} -> {end:.2f} nats")
assert end < start - 8, (start, end)
