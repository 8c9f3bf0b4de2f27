"""Pipelines under cross-validation, grid search and nested folds; the last fit is on all rows."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

X, y = load_breast_cancer(return_X_y=True)
union = FeatureUnion([("pca", PCA(5)), ("best", SelectKBest(k=8))])
pipe = make_pipeline(StandardScaler(), union, LogisticRegression(max_iter=500))
print(f"folds {cross_val_score(pipe, X, y).mean():.3f}")

search = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=StratifiedKFold(3))
print(f"nested {cross_val_score(search, X, y, cv=3).mean():.3f}")
out_of_fold = cross_val_predict(make_pipeline(QuantileTransformer(n_quantiles=50), LogisticRegression()), X, y, cv=3)

X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
search.fit(X_train, y_train)
print(f"held out {search.score(X_test, y_test):.3f}, by proba {search.predict_proba(X_test)[:, 1].mean():.3f}")

final = search.best_estimator_.fit(X, y)  # everything is judged: now all rows may be used
new = X[:50] + np.random.default_rng(0).normal(0, X.std(0) * 0.1, (50, 30))
print("tomorrow", final.predict(new).mean(), out_of_fold.mean())
