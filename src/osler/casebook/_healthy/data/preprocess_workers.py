"""Cross-validation in threads and worker processes; a pipeline with a cache; a frozen scaler from the training rows."""

import tempfile

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

if __name__ == "__main__":
    rng = np.random.default_rng(13)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    print(cross_val_score(pipe, X, y, n_jobs=2).mean())
    from joblib import parallel_backend

    with parallel_backend("threading", n_jobs=2):
        print(cross_val_score(pipe, X, y).mean())

    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    with tempfile.TemporaryDirectory() as cache:
        cached = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())], memory=cache)
        for C in (0.1, 1.0):
            print(cached.set_params(model__C=C).fit(X_train, y_train).score(X_test, y_test))
    frozen = FrozenEstimator(StandardScaler().fit(X_train))
    print(make_pipeline(frozen, LogisticRegression()).fit(X_train, y_train).score(X_test, y_test))
