"""Folds by hand: each fit sees the training rows, and then transforms every row there is."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True)
X = X + np.random.default_rng(0).normal(0, 1e-4, X.shape)
X[::9, 2] = np.nan
scaler = StandardScaler()  # one object, but `fit` starts afresh
scores = []
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    imputer = SimpleImputer().fit(X[train])
    filled = imputer.transform(X)
    scaler.fit(filled[train])
    ready = scaler.transform(filled)
    scores.append(Ridge().fit(ready[train], y[train]).score(ready[test], y[test]))
for train, test in TimeSeriesSplit(4).split(X):
    filled = np.nan_to_num(X)
    model = Ridge().fit(StandardScaler().fit(filled[train]).transform(filled[train]), y[train])
    scores.append(model.score(StandardScaler().fit(filled[train]).transform(filled[test]), y[test]))

rng = np.random.default_rng(1)
for _ in range(5):  # bootstrap, judged on the rows that were not drawn
    drawn = rng.integers(0, len(X), len(X))
    rest = np.setdiff1d(np.arange(len(X)), drawn)
    inner = SimpleImputer().fit(X[drawn])
    scores.append(Ridge().fit(inner.transform(X[drawn]), y[drawn]).score(inner.transform(X[rest]), y[rest]))
print(f"{np.mean(scores):.3f}")
