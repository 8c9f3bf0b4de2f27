"""A negative-binomial count model whose log-gamma is a custom autograd function with its own backward."""

import json
import math
import sys

import torch
from torch import nn

FAULTY = "--faulty" in sys.argv
BATCH, STEPS = 32, 26
SMALLEST = 1e-6


class LogGamma(torch.autograd.Function):
    """log Gamma(x), with x held at 1e-6 or above."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.lgamma(x.clamp(min=SMALLEST))

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        if FAULTY:
            slope = torch.digamma(x)  # fault-here
        else:
            slope = torch.digamma(x.clamp(min=SMALLEST)) * (x > SMALLEST)
        return gradient * slope


torch.manual_seed(0)
X = torch.randn(STEPS * BATCH, 7)
exposure = torch.rand(len(X)) * 4 + 1
exposure[10 * BATCH + 13] = 0.0  # a policy that was cancelled on its first day
claims = torch.poisson(exposure * torch.exp(0.4 * X[:, 0]))

model = nn.Sequential(nn.Linear(7, 24), nn.Tanh(), nn.Linear(24, 1), nn.Softplus())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
evidence = {"first_bad_step": -1, "zero_exposures": 0, "loss_is_finite": 1, "bad_gradients": 0}

for step, (xb, eb, yb) in enumerate(zip(X.split(BATCH), exposure.split(BATCH), claims.split(BATCH), strict=True)):
    size = model(xb).squeeze(1) * eb
    log_likelihood = LogGamma.apply(yb + size) - LogGamma.apply(size) - torch.lgamma(yb + 1) - (yb + size) * math.log(2)
    loss = -log_likelihood.mean()
    optimizer.zero_grad()
    loss.backward()
    bad = sum(not p.grad.isfinite().all() for p in model.parameters())
    if evidence["first_bad_step"] < 0 and bad:
        evidence = {
            "first_bad_step": step,
            "zero_exposures": int((eb == 0).sum()),
            "loss_is_finite": int(loss.isfinite()),
            "bad_gradients": int(bad),
        }
    optimizer.step()
    if step % 8 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
