"""The state of training, and the same state after a save, other row order and other settings that change nothing."""

import pickle

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from osler.data.preprocess import snapshot

rng = np.random.default_rng(14)
X = np.column_stack([rng.lognormal(8, 1, 900), rng.normal(40, 10, 900), rng.normal(0, 1e-9, 900), rng.integers(0, 5, 900)])
X[::11, 1] = np.nan


def fitted(rows, jobs):
    numbers = make_pipeline(SimpleImputer(), StandardScaler(copy=jobs is None), PCA(2, svd_solver="full"))
    parts = [("numbers", numbers, [0, 1, 2]), ("kind", OneHotEncoder(), [3])]
    return ColumnTransformer(parts, n_jobs=jobs, verbose=jobs is not None).fit(rows)


snapshot(fitted(X, None)).save("training.json")
again = pickle.loads(pickle.dumps(fitted(X[::-1], 1)))  # the same rows, summed up in another order
snapshot(again).save("serving.json")
