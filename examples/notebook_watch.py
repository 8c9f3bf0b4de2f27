# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Watching a training inside a notebook
#
# `osler.watch()` does for a block of code what `osler run` does for a script. The report is an object in memory; nothing is
# written to disk. Evaluate `watch` in a cell of its own to see the report's page in the notebook.

# %%
import torch
from sklearn.datasets import load_diabetes
from torch import nn

import osler

# %% [markdown]
# A regression on the diabetes data of scikit-learn. Each batch is standardised by hand; the batches follow the data set's
# order.

# %%
torch.manual_seed(0)
features, target = load_diabetes(return_X_y=True)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(target, dtype=torch.float32)
y = (y - y.mean()) / y.std()

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def normalised(batch: torch.Tensor) -> torch.Tensor:
    """Every column of a batch with mean 0 and standard deviation 1."""
    return (batch - batch.mean(0)) / batch.std(0)


# %%
with osler.watch() as watch:
    for _ in range(2):
        for xb, yb in zip(x.split(21), y.split(21), strict=True):
            loss = (model(normalised(xb)).squeeze(1) - yb).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

print(f"last loss: {loss.item()}")

# %% [markdown]
# 442 samples in batches of 21 leave one over, and the standard deviation of one sample is 0/0.

# %%
watch.show()
