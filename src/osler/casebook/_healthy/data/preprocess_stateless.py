"""Transformers that learn nothing from values, on all rows before the split; encoders of the target as well."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, LabelEncoder, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.random_projection import GaussianRandomProjection


class LogRatio(TransformerMixin, BaseEstimator):
    def __init__(self, floor=1e-3):
        self.floor = floor

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        safe = np.maximum(np.abs(X), self.floor)
        return np.log(safe[:, :-1] / safe[:, 1:])


rng = np.random.default_rng(0)
X = rng.gamma(2.0, size=(600, 8))
X[::5, 1] = np.nan
y = LabelEncoder().fit_transform(np.where(np.nan_to_num(X[:, 0]) + rng.normal(0, 1, 600) > 2, "yes", "no"))

fixed = make_pipeline(
    SimpleImputer(strategy="constant", fill_value=0.0),
    FunctionTransformer(np.log1p),
    PolynomialFeatures(2),
    Normalizer(),
    GaussianRandomProjection(12, random_state=0),
)
Z = fixed.fit_transform(X)
Z = np.hstack([Z, LogRatio().fit_transform(np.nan_to_num(X)), Binarizer(threshold=1.5).fit_transform(np.nan_to_num(X))])
Z_train, Z_test, y_train, y_test = train_test_split(Z, y, random_state=0)
print(LogisticRegression().fit(Z_train, y_train).score(Z_test, y_test), cross_val_score(LogisticRegression(), Z, y).mean())

words = [" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(600)]
hashed = HashingVectorizer(n_features=64, token_pattern=".").fit_transform(words)
codes = OneHotEncoder(categories=[list("abcdefgh")]).fit_transform([[w[0]] for w in words])
print(cross_val_score(LogisticRegression(), hashed, y).mean(), cross_val_score(LogisticRegression(), codes, y).mean())
