"""A model that is trained on part of the training rows and scored on all of them; hardly a test, and not meant as one."""

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

rng = np.random.default_rng(12)
X = rng.normal(size=(1500, 7))
y = (X[:, 0] + rng.normal(0, 1, 1500) > 1.3).astype(int)  # few positives
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
Z_train, Z_test = scaler.transform(X_train), scaler.transform(X_test)

positive = np.flatnonzero(y_train == 1)
negative = rng.choice(np.flatnonzero(y_train == 0), len(positive), replace=False)
balanced = np.concatenate([positive, negative])
model = LogisticRegression().fit(Z_train[balanced], y_train[balanced])
print(f"all training rows {model.score(Z_train, y_train):.3f}, test {model.score(Z_test, y_test):.3f}")

few = rng.choice(len(Z_train), 300, replace=False)
print(f"kernel {SVC().fit(Z_train[few], y_train[few]).score(Z_test, y_test):.3f}")

path = Ridge(alpha=1.0, solver="lsqr")
for train, test in KFold(3).split(X):  # a linear model ends where it would have ended anyway
    warm = LogisticRegression(warm_start=True)
    for C in (0.01, 0.1, 1.0):
        warm.set_params(C=C).fit(X[train], y[train])
    print(f"{warm.score(X[test], y[test]):.2f} {path.fit(X[train], y[train]).score(X[test], y[test]):.2f}", end="; ")
print()
