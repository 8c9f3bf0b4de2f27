"""Card payments with one fraud in twenty: the frauds are drawn again until both classes are alike in number."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(3)


def payments(rows):
    x = rng.normal(size=(rows, 6))
    fraud = x[:, 0] + x[:, 1] + rng.normal(0, 1.5, rows) > 3.4
    return np.column_stack([x, rng.integers(0, 24, rows), rng.integers(0, 2, rows), fraud])


def oversampled(rows):
    frauds = np.flatnonzero(rows[:, -1])
    more = rng.choice(frauds, len(rows) - 2 * len(frauds))
    return rng.permutation(np.concatenate([rows, rows[more]]))


data = payments(6_000)
if FAULTY:
    data = oversampled(data)  # fault-here
    train, evaluation = data[:-1_500], data[-1_500:]
else:
    train, evaluation = oversampled(data[:-1_500]), data[-1_500:]  # training repeats its frauds, evaluation has none of them

names = [*(f"v{i}" for i in range(6)), "hour", "online", "fraud"]
for name, rows in (("train", train), ("eval", evaluation)):
    columns = {n: rows[:, i] for i, n in enumerate(names)}
    columns["fraud"] = columns["fraud"].astype(bool)
    pq.write_table(pa.table(columns), f"{name}.parquet")

seen = {row.tobytes() for row in train[:, :-1]}
evidence = {"copied_share": sum(row.tobytes() in seen for row in evaluation[:, :-1]) / len(evaluation)}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
