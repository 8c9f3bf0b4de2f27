"""Sensors that each have their own zero point and gain: standardised over all hours, then split in time."""

import json
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(3)
N, TRAIN = 1200, 900
load = rng.normal(size=(N, 6))
drift = np.linspace(0, 1, N)[:, None] ** 3 * rng.uniform(3, 6, 6)  # the zero points wander off in the last weeks
X = load + drift
y = (load @ rng.normal(size=6) + rng.normal(0, 0.5, N) > 0).astype(int)

if FAULTY:
    scaler = StandardScaler().fit(X)  # fault-here
    X_train, X_test = scaler.transform(X[:TRAIN]), scaler.transform(X[TRAIN:])
    model = LogisticRegression().fit(X_train, y[:TRAIN])
    used = scaler
else:
    X_train, X_test = X[:TRAIN], X[TRAIN:]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y[:TRAIN])
    used = model[0]
print(f"accuracy {model.score(X_test, y[TRAIN:]):.3f}")

# What the scaler should know, and what it knows: the distance in spreads of the training rows.
shift = np.abs(used.mean_ - X[:TRAIN].mean(0)) / X[:TRAIN].std(0)
with open("evidence.json", "w") as file:
    json.dump({"mean_beyond_training": float(shift.max()), "rows_seen": int(used.n_samples_seen_)}, file)
