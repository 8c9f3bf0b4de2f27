"""Survey answers: a handful of distinct rows, so that the same row stands in training and test again and again."""

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

rng = np.random.default_rng(4)
answers = rng.integers(1, 4, (800, 4)).astype(float)
y = (answers.sum(1) + rng.normal(0, 1.5, 800) > 8).astype(int)

X_train, X_test, y_train, y_test = train_test_split(answers, y, random_state=0)
scaler = StandardScaler().fit(X_train)
print(LogisticRegression().fit(scaler.transform(X_train), y_train).score(scaler.transform(X_test), y_test))

rows = rng.permutation(800)
train, test = rows[:600], rows[600:]
encoder = OneHotEncoder().fit(answers[train])
print(LogisticRegression().fit(encoder.transform(answers[train]), y[train]).score(encoder.transform(answers[test]), y[test]))

places = rng.integers(0, 40, 800)
clock = np.arange(800.0)  # counts up in every part alike
table = np.column_stack([clock, answers])
for fit, held in GroupKFold(4).split(table, y, places):
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(table[fit, 1:])
    first = np.column_stack([np.arange(float(len(fit))), ordinal.transform(table[fit, 1:])])
    second = np.column_stack([np.arange(float(len(held))), ordinal.transform(table[held, 1:])])
    spread = StandardScaler().fit(first)
    model = GradientBoostingClassifier(n_estimators=10).fit(spread.transform(first), y[fit])
    print(f"{model.score(spread.transform(second), y[held]):.2f}", end=" ")
print()
