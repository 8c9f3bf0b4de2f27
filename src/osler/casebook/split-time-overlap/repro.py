"""A year of hourly load with its lags: the last fifth is for evaluation, or a fifth of the hours at random."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(5)
rows = 24 * 365
hour = np.datetime64("2023-01-01", "ns") + np.arange(rows) * np.timedelta64(1, "h")
noise = np.zeros(rows)
for i in range(1, rows):
    noise[i] = 0.97 * noise[i - 1] + rng.normal()
load = 50 + 8 * np.sin(2 * np.pi * np.arange(rows) / 24) + noise
data = pa.table({"hour": hour, "lag1": np.roll(load, 1), "lag24": np.roll(load, 24), "load": load}).slice(24)

if FAULTY:
    order = rng.permutation(data.num_rows)  # fault-here
else:
    order = np.arange(data.num_rows)
    order[: -data.num_rows // 5] = rng.permutation(order[: -data.num_rows // 5])  # shuffled within training only
cut = data.num_rows - data.num_rows // 5 - 24  # a day is left out, as long as the longest lag
train, evaluation = data.take(pa.array(order[:cut])), data.take(pa.array(order[cut + 24 :]))
pq.write_table(train, "train.parquet")
pq.write_table(evaluation, "eval.parquet")

known = set(train["hour"].to_numpy().astype("int64").tolist())
asked = evaluation["hour"].to_numpy().astype("int64").tolist()
step = 3_600_000_000_000
beside = sum(t < max(known) and t > min(known) for t in asked) / len(asked)
evidence = {
    "between_training_hours": beside,
    "with_a_training_hour_next_to_it": sum(t - step in known or t + step in known for t in asked) / len(asked),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
