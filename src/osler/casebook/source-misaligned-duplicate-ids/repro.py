"""Laboratory samples and their results; a timeout makes the export send its last chunk again."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
SAMPLES = 5000
CHUNK = 250

rng = np.random.default_rng(3)
start = 1_704_067_200_000_000_000
seconds = np.sort(rng.uniform(0, 30 * 86400, SAMPLES))
taken = start + (seconds * 1e9).astype(np.int64)
ids = np.arange(SAMPLES) + 70_000
value = rng.normal(5.1, 0.8, SAMPLES)

rows = np.arange(SAMPLES)
measured = taken + (rng.exponential(4, SAMPLES) * 1e9).astype(np.int64)
if FAULTY:
    again = np.arange(3000, 3000 + CHUNK)
    rows = np.concatenate([rows[: 3000 + CHUNK], again, rows[3000 + CHUNK :]])  # fault-here
    moments, values = measured[rows], value[rows]
else:
    # some samples are measured a second time days later, with a new value: two results, both real
    again = rng.choice(SAMPLES, CHUNK, replace=False)
    rows = np.concatenate([rows, again])
    moments = np.concatenate([measured, measured[again] + 2 * 86400 * 10**9])
    values = np.concatenate([value, value[again] + rng.normal(0, 0.1, CHUNK)])
    order = np.argsort(moments, kind="stable")
    rows, moments, values = rows[order], moments[order], values[order]

def instants(ns):
    return pa.array(ns, pa.timestamp("ns", "UTC"))


ward = rng.integers(0, 9, SAMPLES)
pq.write_table(pa.table({"sample_id": ids, "taken_at": instants(taken), "ward": ward}), "patients.parquet")
pq.write_table(pa.table({"sample_id": ids[rows], "taken_at": instants(moments), "value": values}), "results.parquet")

seen, copies = set(), 0
for key in zip(ids[rows].tolist(), moments.tolist(), values.tolist()):
    copies += key in seen
    seen.add(key)
evidence = {"copied_rows": copies, "rows": len(rows)}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
