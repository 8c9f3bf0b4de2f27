"""Stacked models: the second level learns from out-of-fold predictions of the first."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=1)

base = [make_pipeline(StandardScaler(), LogisticRegression()), GaussianNB()]
level = np.column_stack([cross_val_predict(m, X_train, y_train, method="predict_proba")[:, 1] for m in base])
second = LogisticRegression().fit(level, y_train)
judged = np.column_stack([m.fit(X_train, y_train).predict_proba(X_test)[:, 1] for m in base])
print(f"by hand {second.score(judged, y_test):.3f}")

stack = StackingClassifier([("a", base[0]), ("b", DecisionTreeClassifier(max_depth=3))], LogisticRegression())
print(f"stack {stack.fit(X_train, y_train).score(X_test, y_test):.3f}")
calibrated = CalibratedClassifierCV(make_pipeline(StandardScaler(), RidgeClassifier()), cv=3)
print(f"calibrated {calibrated.fit(X_train, y_train).score(X_test, y_test):.3f}")
chosen = make_pipeline(StandardScaler(), RFECV(LogisticRegression(), step=6, cv=3), BaggingClassifier(n_estimators=8))
print(f"chosen {chosen.fit(X_train, y_train).score(X_test, y_test):.3f}")

city = np.random.default_rng(0).integers(0, 12, (len(X_train), 1))
encoded = TargetEncoder(cv=3).fit_transform(city, y_train)
print(encoded.shape)
