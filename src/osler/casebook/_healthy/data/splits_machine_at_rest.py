"""Four sensors once a minute; at rest all show zero, or zero with the noise of the converter."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(1)
rows = 12_000
x = rng.normal(size=(rows, 4)) * [5.0, 0.3, 80.0, 2.0]
shift = np.arange(rows) // 300 % 3
x[shift == 0, :2] = 0.0
x[shift == 0, 2:] = 0.0
x[shift == 1] += 10.0
drift = shift == 2
x[drift] = rng.normal(0, 1e-4, (drift.sum(), 4)) * [5.0, 0.3, 80.0, 2.0]
time = np.datetime64("2024-03-01", "ns") + np.arange(rows) * np.timedelta64(1, "m")
table = pa.table({"time": time, "power": x[:, 0], "vibration": x[:, 1], "speed": x[:, 2], "heat": x[:, 3]})
pq.write_table(table.slice(0, 9_000), "a.parquet")
pq.write_table(table.slice(9_060), "b.parquet")
