"""A credit model and its scaler: the service fits the scaler again on the rows of one day."""

import json
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from osler.data.preprocess import snapshot

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(2)
NAMES = np.array(["income", "debt", "age"])


def customers(n, growth=1.0):
    income = rng.lognormal(3, 0.5, n) * growth
    return np.column_stack([income, income * rng.uniform(0, 2, n), rng.normal(45, 12, n)])


history, today = customers(4000), customers(300, growth=1.4)
risky = history[:, 1] / history[:, 0] + rng.normal(0, 0.2, 4000) > 1.2
trained = StandardScaler().fit(history)
model = LogisticRegression().fit(trained.transform(history), risky)
snapshot(trained).save("training.json")

if FAULTY:
    serving = StandardScaler().fit(today)  # fault-here
else:
    # The same rows, summed up in another order: the numbers differ in their last digits, the state does not.
    serving = StandardScaler()
    for part in np.array_split(history[rng.permutation(4000)], 7):
        serving.partial_fit(part)
snapshot(serving).save("serving.json")

meant, given = model.predict(trained.transform(today)), model.predict(serving.transform(today))
with open("evidence.json", "w") as file:
    json.dump({"decisions_changed": float(np.mean(meant != given))}, file)
