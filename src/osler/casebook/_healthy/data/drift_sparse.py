"""Mostly zeros, mostly missing, constant, and categories of which most are rare and some are new each time."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(4)
for name, rows in (("a.parquet", 8_000), ("b.parquet", 900)):
    rare = np.minimum(rng.zipf(1.6, rows), 5_000)
    table = {
        "claims": np.where(rng.random(rows) < 0.93, 0.0, rng.gamma(2, 500, rows)),
        "seldom": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.97),
        "version": np.full(rows, 3),
        "plan": [f"plan {r}" for r in np.minimum(rare, 600)],
        "empty": pa.nulls(rows),
    }
    pq.write_table(pa.table(table), name)
