"""Readings of two devices in one table, row by row in turn, with the time as a count since 1970."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(4)
rows = 4_000
# device b lags by half an hour, so in the table the times go back at every second row: two series, each in order
at = np.repeat(1_704_067_200 + 60 * np.arange(rows // 2), 2) - np.tile([0, 1_800], rows // 2)
device = np.tile(["a", "b"], rows // 2)
if FAULTY:
    at = np.where(device == "b", at * 1_000, at)  # fault-here

table = pa.table({"at": at, "device": device, "value": rng.normal(size=rows)})
cut = rows * 4 // 5
pq.write_table(table.slice(0, cut), "train.parquet")
pq.write_table(table.slice(cut), "eval.parquet")

evidence = {"largest_over_smallest": float(at.max() / at.min())}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
