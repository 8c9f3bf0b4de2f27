"""Codes: as integers, as floats that carry float noise on one side, as float32 on one side, as text with leading zeros."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(2)
for name, rows, noise, kind in (("a.parquet", 6_000, 0.0, np.float64), ("b.parquet", 3_000, 1e-9, np.float32)):
    code = rng.integers(0, 5, rows)
    table = {
        "as_integer": rng.integers(0, 5, rows),
        "with_noise": code + noise * rng.random(rows),
        "tenths": (rng.integers(0, 30, rows) / 10).astype(kind),
        "as_text": [f"{c:03d}" for c in rng.integers(0, 12, rows)],
        "zip": [f"{c:05d}" for c in rng.integers(0, 90_000, rows)],
    }
    pq.write_table(pa.table(table), name)
