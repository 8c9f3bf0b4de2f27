"""Customers joined with the scores of another system."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(11)


def month(rows, padded):
    ids = rng.integers(0, 100_000, rows)
    scores = {f"{i:06d}": float(rng.normal(600, 80)) for i in range(100_000) if i % 33}  # 3 % were never scored
    keys = [f"{i:06d}" if padded else str(i) for i in ids]
    return pa.table(
        {
            "age": rng.normal(45, 12, rows),
            "score": pa.array([scores.get(key) for key in keys], pa.float64()),
            "segment": rng.choice(["a", "b", "c"], rows),
        }
    )


reference = month(8_000, padded=True)
if FAULTY:
    parts = [month(4_000, padded=True), month(1_000, padded=False)]  # fault-here
    current = pa.concat_tables(parts)
else:
    current = month(5_000, padded=True)

pq.write_table(reference, "reference.parquet")
pq.write_table(current, "current.parquet")
evidence = {
    "missing_before": reference["score"].null_count / reference.num_rows,
    "missing_now": current["score"].null_count / current.num_rows,
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
