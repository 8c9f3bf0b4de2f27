"""A stream: the scaler takes in each batch, the model predicts it, and only then learns it. Then epochs on one split."""

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(8)
weights = rng.normal(size=6)
scaler, model, right = StandardScaler(), SGDClassifier(random_state=0), []
for batch in range(40):
    X = rng.normal(size=(50, 6)) + 0.01 * batch
    y = (X @ weights > 0).astype(int)
    scaler.partial_fit(X)
    ready = scaler.transform(X)
    if batch:
        right.append((model.predict(ready) == y).mean())
    model.partial_fit(ready, y, classes=[0, 1])
print(f"before each lesson {np.mean(right):.3f}")

X = rng.normal(size=(500, 6))
y = (X @ weights > 0).astype(int)
for train, test in KFold(4).split(X):
    inner = StandardScaler()
    for part in np.array_split(train, 6):  # a table larger than memory, in parts
        inner.partial_fit(X[part])
    learner = SGDClassifier(random_state=0)
    for epoch in range(5):
        for part in np.array_split(rng.permutation(train), 8):
            learner.partial_fit(inner.transform(X[part]), y[part], classes=[0, 1])
        seen = learner.score(inner.transform(X[train]), y[train])
        held = learner.score(inner.transform(X[test]), y[test])
    print(f"{seen:.2f}/{held:.2f}", end=" ")
print()
