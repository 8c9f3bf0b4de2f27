"""Parcels from several depots. One depot's new scales send grams."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
ROWS = 4000


def parcels(seed):
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0.5, 0.6, ROWS)  # kg
    volume = weight * rng.lognormal(1.5, 0.3, ROWS)  # litres
    # Declared values have so heavy a tail that each new day brings one far beyond all before.
    value = 20 * (1 + rng.pareto(1.2, ROWS))
    return {"number": np.arange(ROWS) + ROWS * seed, "weight": weight, "volume": volume, "value": value}


train, today = parcels(0), parcels(1)
if FAULTY:
    depot = np.random.default_rng(2).random(ROWS) < 0.03
    today["weight"][depot] *= 1000  # fault-here
pq.write_table(pa.table(train), "train.parquet")
pq.write_table(pa.table(today), "today.parquet")


def price(weight):
    return np.column_stack([np.ones(len(weight)), weight])


# Price of carriage: 4 + 1.5 per kg. Fitted on training, asked about today's numbers, compared with what the parcel weighs.
w, *_ = np.linalg.lstsq(price(train["weight"]), 4 + 1.5 * train["weight"] + np.random.default_rng(3).normal(size=ROWS), rcond=None)
true = parcels(1)["weight"]
evidence = {
    "error_train": float(np.abs(price(train["weight"]) @ w - 4 - 1.5 * train["weight"]).mean() + 1),
    "error_today": float(np.abs(price(today["weight"]) @ w - 4 - 1.5 * true).mean()),
}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
