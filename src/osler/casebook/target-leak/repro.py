"""Customers and whether they left; the last column comes from the refund that follows a cancellation."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(9)
rows = 4_000
x = rng.normal(size=(rows, 5))
left = x[:, 0] + 0.6 * x[:, 1] + rng.normal(size=rows) > 0.5
days = rng.gamma(2.0, 6.0, rows)
if FAULTY:
    refund = np.where(left, days, np.nan)  # fault-here
else:
    # refunds for other reasons too: those who leave have one more often, which is known before
    refund = np.where(rng.random(rows) < np.where(left, 0.75, 0.25), days, np.nan)

table = pa.table({**{f"use{i}": x[:, i] for i in range(5)}, "days_to_refund": refund, "left": left})
pq.write_table(table.slice(0, 3_200), "train.parquet")
pq.write_table(table.slice(3_200), "eval.parquet")


def accuracy(values):
    cuts = np.quantile(values, np.linspace(0.02, 0.98, 49))
    hits = [((values > cut) == left).mean() for cut in cuts]
    return float(max(max(hits), 1 - min(hits)))


evidence = {
    "accuracy_of_missing": float(((~np.isnan(refund)) == left).mean()),
    "accuracy_of_the_best_other": max(accuracy(x[:, i]) for i in range(5)),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
