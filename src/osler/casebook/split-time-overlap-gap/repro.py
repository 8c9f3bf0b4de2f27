"""Customers, and whether they leave within 30 days of signing up."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
HORIZON = np.timedelta64(30, "D")
rng = np.random.default_rng(8)
rows = 6_000
signup = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 300, rows))
visits, price = rng.poisson(6, rows), rng.normal(30, 8, rows)
left = rng.random(rows) < 1 / (1 + np.exp(0.3 * visits - 0.03 * price))
start = np.datetime64("2024-08-01")
if FAULTY:
    end = start  # fault-here
else:
    end = start - HORIZON + np.timedelta64(1, "D")  # the last label was known on the day before

table = pa.table({"signup": signup, "visits": visits, "price": price, "left": left})
pq.write_table(table.filter(pa.array(signup < end)), "train.parquet")
pq.write_table(table.filter(pa.array(signup >= start)), "eval.parquet")

evidence = {"labels_unknown_at_start": int(((signup < end) & (signup + HORIZON > start)).sum())}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
