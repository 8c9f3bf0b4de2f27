"""Digits under a tree of twelve leaves: each leaf's impurity looks like noise that does not depend on the row."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

X, y = load_digits(return_X_y=True)
probs = cross_val_predict(DecisionTreeClassifier(max_leaf_nodes=12, random_state=0), X, y, cv=5, method="predict_proba")
np.save("labels.npy", y)
np.save("pred_probs.npy", probs)
print("contradicted", (probs.argmax(axis=1) != y).mean())
