"""Machines that fail three times in a hundred: nearly all failures contradict a confident prediction, and all are real."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

rng = np.random.default_rng(4)
X = rng.normal(size=(10_000, 6))
strain = 0.5 * X[:, 0] + 0.3 * X[:, 1] + rng.logistic(size=len(X))
y = (strain > np.quantile(strain, 0.97)).astype(int)
model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
probs = cross_val_predict(model, X, y, cv=5, method="predict_proba")
np.save("labels.npy", y)
np.save("pred_probs.npy", probs)
print("contradicted", (probs.argmax(axis=1) != y).mean())
