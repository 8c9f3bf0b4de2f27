"""Eighty features that hang together, compared in a small window: some of them differ by chance."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

mix = np.random.default_rng(0).normal(size=(6, 80))
for seed, (name, rows) in enumerate((("a.parquet", 3_000), ("b.parquet", 200)), start=1):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, 6)) @ mix + 0.3 * rng.normal(size=(rows, 80))
    pq.write_table(pa.table({f"f{i}": values[:, i] for i in range(80)}), name)
