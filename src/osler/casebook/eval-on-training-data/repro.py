"""Flats and their prices; evaluation is written as CSV, in another order of rows and columns, with new numbers of rows."""

import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(12)
rows = 2_500
area, rooms, year = rng.gamma(8, 10, rows).round(1), rng.integers(1, 7, rows), rng.integers(1900, 2024, rows)
distance = rng.exponential(4, rows).round(3)
price = 3_000 * area - 20_000 * distance + 40_000 * rng.normal(size=rows)
train = np.arange(2_000)
if FAULTY:
    evaluation = rng.permutation(train)[:500]  # fault-here
else:
    evaluation = rng.permutation(np.arange(2_000, rows))

columns = {"flat": np.arange(rows), "area": area, "rooms": rooms, "year": year, "distance": distance, "price": price}
pq.write_table(pa.table({name: values[train] for name, values in columns.items()}), "train.parquet")
with open("eval.csv", "w", newline="") as file:
    out = csv.writer(file)
    out.writerow(["distance", "area", "flat", "year", "rooms", "price"])
    for number, i in enumerate(evaluation):
        out.writerow([distance[i], area[i], 90_000 + number, year[i], rooms[i], price[i]])

x = np.column_stack([area, rooms * 10, year / 5, distance * 10])
nearest = [train[np.square(x[train] - x[i]).sum(axis=1).argmin()] for i in evaluation]
error = np.abs(price[nearest] - price[evaluation]).mean() / price.std()
evidence = {"error_of_nearest_neighbour": float(error), "evaluation_rows": len(evaluation)}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
