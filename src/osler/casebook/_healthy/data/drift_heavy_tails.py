"""Columns with tails so heavy that their largest values, and their means, differ from one sample to the next."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(1)
for name, rows in (("a.parquet", 5_000), ("b.parquet", 500)):
    table = {
        "cauchy": rng.standard_cauchy(rows),
        "pareto": rng.pareto(0.8, rows),
        "lognormal": rng.lognormal(0, 3, rows),
        "student": rng.standard_t(1.5, rows),
        "spikes": np.where(rng.random(rows) < 0.002, 1e9, rng.normal(size=rows)),
    }
    pq.write_table(pa.table(table), name)
