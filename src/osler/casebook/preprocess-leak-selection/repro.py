"""Gene expressions without any relation to the diagnosis; the best genes are chosen on all patients."""

import json
import sys

import numpy as np
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(7)
X = rng.normal(size=(120, 2000))
y = np.repeat([0, 1], 60)
rng.shuffle(y)
folds = StratifiedKFold(5, shuffle=True, random_state=0)

select = SelectKBest(f_classif, k=20)
if FAULTY:
    best = select.fit_transform(X, y)  # fault-here
    scores = cross_val_score(LogisticRegression(), best, y, cv=folds)
else:
    scores = cross_val_score(make_pipeline(select, LogisticRegression()), X, y, cv=folds)
print(f"accuracy {scores.mean():.3f} where nothing can be learned")

with open("evidence.json", "w") as file:
    json.dump({"accuracy_on_random_labels": float(scores.mean())}, file)
