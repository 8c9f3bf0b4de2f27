"""Houses, with a price estimate that another program adds."""

import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(5)
COLUMNS = ["area", "rooms", "age", "distance", "estimate"]


def houses(count):
    area = rng.gamma(6, 20, count)
    rooms = np.round(1 + area / 28 + rng.normal(0, 0.7, count)).clip(1)
    age = rng.gamma(2, 18, count)
    distance = rng.gamma(2, 4, count)
    estimate = 900 * area - 400 * age - 2000 * distance + rng.normal(0, 15_000, count)
    return np.stack([area, rooms, age, distance, estimate], axis=1)


reference = houses(5000)
current = houses(3000)
if FAULTY:
    current[:, 4] = np.sort(current[:, 4])  # fault-here
else:
    # sorted as a whole: the rows stay whole, only their order tells something
    current = current[np.argsort(current[:, 4])][rng.permutation(3000)]

for name, rows in (("reference.csv", reference), ("current.csv", current)):
    np.savetxt(name, rows, delimiter=",", header=",".join(COLUMNS), comments="", fmt="%.6g")


def ks(a, b):
    both = np.sort(np.concatenate([a, b]))
    f = np.searchsorted(np.sort(a), both, "right") / len(a)
    g = np.searchsorted(np.sort(b), both, "right") / len(b)
    return float(np.abs(f - g).max())


evidence = {
    "correlation_before": float(np.corrcoef(reference[:, 0], reference[:, 4])[0, 1]),
    "correlation_now": float(np.corrcoef(current[:, 0], current[:, 4])[0, 1]),
    "largest_ks": max(ks(reference[:, j], current[:, j]) for j in range(5)),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
