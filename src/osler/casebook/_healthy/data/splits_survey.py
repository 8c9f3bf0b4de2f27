"""Answers from 1 to 5, correlated as answers are, to eight questions; split at random by person."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(0)
mood = rng.normal(size=(12_000, 1))
answers = np.clip(np.round(3.6 + 0.9 * mood + 0.5 * rng.normal(size=(12_000, 8))), 1, 5).astype(np.int8)
table = pa.table(
    {
        "person": np.arange(12_000),
        **{f"q{i}": answers[:, i] for i in range(8)},
        "sex": rng.choice(["f", "m"], 12_000),
        "recommends": mood[:, 0] + 0.8 * rng.normal(size=12_000) > 0,
    }
)
order = rng.permutation(12_000)
pq.write_table(table.take(pa.array(order[:9_000])), "a.parquet")
pq.write_table(table.take(pa.array(order[9_000:])), "b.parquet")
