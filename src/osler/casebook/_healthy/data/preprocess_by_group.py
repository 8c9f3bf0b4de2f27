"""Recordings of people, each standardised by itself; then one person after the other is left out."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.preprocessing import RobustScaler, StandardScaler

rng = np.random.default_rng(9)
people = np.repeat(np.arange(8), 60)
signal = rng.normal(size=(480, 10))
y = (signal[:, 0] + signal[:, 1] + rng.normal(0, 0.5, 480) > 0).astype(int)
X = signal * rng.uniform(0.5, 3, (8, 10))[people] + rng.normal(0, 5, (8, 10))[people]

for name, make in (("fresh", StandardScaler), ("kept", None)):
    one = RobustScaler()
    Z = np.empty_like(X)
    for person in range(8):
        rows = people == person
        Z[rows] = (make() if make else one).fit_transform(X[rows])
    scores = [
        LogisticRegression().fit(Z[train], y[train]).score(Z[test], y[test])
        for train, test in LeaveOneGroupOut().split(Z, y, people)
    ]
    print(name, f"{np.mean(scores):.3f}")
