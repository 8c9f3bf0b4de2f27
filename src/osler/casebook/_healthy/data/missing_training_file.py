"""A training file with holes in its best feature, of which the others say nothing: no imputer would do better."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1500
rng = np.random.default_rng(0)
dose = rng.uniform(0, 10, ROWS)
weight = rng.normal(70, 12, ROWS)
batch = rng.integers(1, 5, ROWS)
effect = 3 * dose - 0.1 * weight + rng.normal(0, 2, ROWS)
dose[rng.random(ROWS) < 0.1] = np.nan
table = {"dose": pa.array(dose, from_pandas=True), "weight": weight, "batch": batch, "effect": effect}
pq.write_table(pa.table(table), "train.parquet")
