"""Sequences that look ragged and are not: buckets of one length, and padding with its lengths beside it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(2)
lengths = np.repeat(np.arange(10, 60), 64)
buckets = [rng.integers(1, 500, n).tolist() for n in lengths]
pq.write_table(pa.table({"tokens": buckets}), "buckets.parquet")

true = rng.integers(20, 41, 2000)
padded = np.zeros((2000, 40), np.int64)
for row, n in enumerate(true):
    padded[row, :n] = rng.integers(1, 500, n)
pq.write_table(pa.table({"tokens": padded.tolist(), "length": true}), "padded.parquet")
