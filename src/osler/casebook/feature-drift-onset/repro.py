"""Payments of two months, the second with its times."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(5)
DAY = 86_400_000


def month(days, a_day=400):
    rows = days * a_day
    at = 1_704_067_200_000 + np.sort(rng.integers(0, days * DAY, rows))
    hour = (at % DAY) / DAY
    return {
        "at": pa.array(at, pa.timestamp("ms", tz="UTC")),
        "amount": rng.lognormal(3.0, 0.8, rows) * (1 + 0.05 * np.sin(2 * np.pi * hour)),
        "retries": rng.poisson(0.3, rows),
    }


reference, current = month(31), month(31)
last = np.arange(31 * 400) >= 27 * 400
if FAULTY:
    half = last & (rng.random(last.size) < 0.5)  # one of two tills
    current["amount"] = np.where(half, 100 * current["amount"], current["amount"])  # fault-here
else:
    one = np.flatnonzero(last)[5]
    current["amount"][one] *= 100  # a single slip of the comma

pq.write_table(pa.table(reference), "reference.parquet")
pq.write_table(pa.table(current), "current.parquet")
a, b = np.sort(reference["amount"]), np.sort(current["amount"][last])
points = np.concatenate((a, b))
gap = np.searchsorted(a, points, side="right") / len(a) - np.searchsorted(b, points, side="right") / len(b)
evidence = {"ks_last_days": float(np.abs(gap).max())}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
