"""Serial numbers and times that grow, a meter that counts on, counts that reach one more, a mild season."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 3000


def month(seed, first, warmer):
    rng = np.random.default_rng(seed)
    warm = 12 + warmer + 6 * rng.normal(size=ROWS)
    return pa.table(
        {
            "order": np.arange(first, first + ROWS),
            "ticket": rng.permutation(ROWS) + first,
            "at": pa.array(1_700_000_000 + 60 * np.arange(first, first + ROWS), pa.timestamp("s")),
            "temperature": warm,
            "cooling": np.maximum(0, 2 * (warm - 10) + rng.normal(size=ROWS)),
            "calls": rng.poisson(4, ROWS),
            "state": rng.integers(0, 3, ROWS),
            "constant": np.full(ROWS, 7.0),
        }
    )


pq.write_table(month(0, 0, 0), "train.parquet")
pq.write_table(month(1, ROWS, 2), "today.parquet")
