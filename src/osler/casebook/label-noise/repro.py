"""Handwritten digits with their labels, and out-of-fold predictions of a classifier trained on those labels.

The clean side is tempting: the model sees 12 of the 64 pixels and contradicts a sixth of the labels, all of them right.
"""

import json
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(0)
X, true = load_digits(return_X_y=True)
labels = true.copy()
if FAULTY:
    wrong = rng.random(len(labels)) < 0.2
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, wrong.sum())) % 10  # fault-here
else:
    X = X[:, [10, 12, 20, 21, 28, 34, 36, 42, 43, 51, 53, 60]]

model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
probs = cross_val_predict(model, X, labels, cv=5, method="predict_proba")
np.save("labels.npy", labels)
np.save("pred_probs.npy", probs.astype(np.float32))

contradicted = probs.argmax(axis=1) != labels
evidence = {
    "wrong_share": float((labels != true).mean()),
    "contradicted_share": float(contradicted.mean()),
    "contradicted_and_wrong": float((contradicted & (labels != true)).mean()),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
