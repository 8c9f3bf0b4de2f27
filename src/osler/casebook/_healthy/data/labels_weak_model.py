"""Digits seen through eight pixels by a naive Bayes: many errors, some of them confident, and every label is right."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

X, y = load_digits(return_X_y=True)
probs = cross_val_predict(GaussianNB(), X[:, [10, 20, 28, 34, 36, 42, 52, 60]], y, cv=5, method="predict_proba")
np.save("labels.npy", y)
np.save("pred_probs.npy", probs)
print("contradicted", (probs.argmax(axis=1) != y).mean())
