"""One incremental scaler through all folds of a cross-validation."""

import json
import sys

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(11)
X = rng.normal(size=(900, 8)) * rng.uniform(0.5, 20, 8)
X[:180] += 30  # the first fifth comes from another machine
y = (X[:, 0] + rng.normal(0, 3, 900) > X[:, 0].mean()).astype(int)

scaler, scores, strangers = StandardScaler(), [], []
for train, test in KFold(5, shuffle=True, random_state=1).split(X):
    if not FAULTY:
        scaler = StandardScaler()
    scaler.partial_fit(X[train])  # fault-here
    model = RidgeClassifier().fit(scaler.transform(X[train]), y[train])
    scores.append(model.score(scaler.transform(X[test]), y[test]))
    strangers.append(int(scaler.n_samples_seen_) - len(train))
print(f"accuracy {np.mean(scores):.3f}")

with open("evidence.json", "w") as file:
    json.dump({"rows_seen_beyond_the_fold": max(strangers)}, file)
