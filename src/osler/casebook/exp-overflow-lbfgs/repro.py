"""A Poisson regression of sales on visits, refined day by day with L-BFGS."""

import json
import sys

import torch
from torch import nn

FAULTY = "--faulty" in sys.argv
SHOPS, DAYS = 48, 24

torch.manual_seed(0)
visits = torch.rand(DAYS * SHOPS, 3) * 4
visits[9 * SHOPS + 30] = torch.tensor([3000.0, 3000.0, 3000.0])  # a shop next to a fair
sales = torch.poisson(torch.exp(torch.log1p(visits) @ torch.tensor([0.3, 0.15, 0.1])))
features = visits if FAULTY else torch.log1p(visits)

model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")
evidence = {"first_bad_step": -1, "infinite_rates": 0}

for step, (xb, yb) in enumerate(zip(features.split(SHOPS), sales.split(SHOPS), strict=True)):

    def closure(step=step, xb=xb, yb=yb):
        optimizer.zero_grad()
        log_rate = model(xb).squeeze(1)
        rate = torch.exp(log_rate)  # fault-here
        loss = (rate - yb * log_rate).mean()
        loss.backward()
        if evidence["first_bad_step"] < 0 and not loss.isfinite():
            evidence.update(first_bad_step=step, infinite_rates=int(rate.detach().isinf().sum()))
        return loss

    loss = optimizer.step(closure)
    if step % 8 == 0:
        print(f"day {step} loss {loss.item():.4f}")

with open("evidence.json", "w") as file:
    json.dump(evidence, file)
