"""One neural network through all folds: partial_fit goes on where the last fold ended."""

import json
import sys

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPClassifier

FAULTY = "--faulty" in sys.argv
EPOCHS = 60

rng = np.random.default_rng(5)
X = rng.normal(size=(240, 20))
y = rng.integers(0, 2, 240)  # nothing can be learned, only remembered

model = MLPClassifier((64,), learning_rate_init=0.02, random_state=0)
scores = []
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    if not FAULTY:
        model = clone(model)
    for _ in range(EPOCHS):
        model.partial_fit(X[train], y[train], classes=[0, 1])  # fault-here
    scores.append(model.score(X[test], y[test]))
print("accuracy by fold:", *(f"{s:.2f}" for s in scores))

with open("evidence.json", "w") as file:
    json.dump({"first_fold": scores[0], "later_folds": float(np.mean(scores[1:]))}, file)
