"""Sensor readings of a plant: last quarter's, on which the model was trained, and today's."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(7)


def readings(rows):
    temperature = rng.normal(80, 4, rows)
    return {
        "temperature": temperature,
        "pressure": 2.0 + 0.05 * (temperature - 80) + rng.normal(0, 0.3, rows),
        "flow": rng.lognormal(1.0, 1.2, rows),  # heavy tail: its largest values differ from day to day
        "valve": rng.integers(0, 4, rows),
    }


reference, current = readings(20_000), readings(4_000)
reference["pressure"][123] = 1e7  # a stray reading, in both worlds
if FAULTY:
    current["pressure"] += 0.35  # fault-here
else:
    current["pressure"] += 0.01

pq.write_table(pa.table(reference), "reference.parquet")
pq.write_table(pa.table(current), "current.parquet")

a, b = np.sort(reference["pressure"]), np.sort(current["pressure"])
points = np.concatenate((a, b))
below = [np.searchsorted(side, points, side="right") / len(side) for side in (a, b)]
width = np.histogram(a, bins=30)[0] / len(a), np.histogram(b, bins=np.histogram(a, bins=30)[1])[0] / len(b)
evidence = {
    "ks": float(np.abs(below[0] - below[1]).max()),
    "ks_of_30_equal_bins": float(np.abs(np.cumsum(width[0]) - np.cumsum(width[1])).max()),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
