"""A quarter of a million rows: every difference is significant, and none matters."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(5)
for name, move in (("a.parquet", 0.0), ("b.parquet", 0.05)):
    rows = 250_000
    table = {
        "mean": rng.normal(move, 1, rows),
        "spread": rng.normal(0, 1 + move, rows),
        "share": pa.array(np.array(["yes", "no"])[(rng.random(rows) < 0.5 + move / 2).astype(int)]),
        "gaps": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.02 + move / 2),
    }
    pq.write_table(pa.table(table), name)
