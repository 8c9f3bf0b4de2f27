"""Two sensors that say nearly the same, one of them often silent: rows with a hole are no odd rows."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 3000


def readings(seed, silent):
    rng = np.random.default_rng(seed)
    level = rng.normal(50, 10, ROWS)
    second = level + 0.3 * rng.normal(size=ROWS)
    second[rng.random(ROWS) < silent] = np.nan
    spare = np.where(rng.random(ROWS) < 0.6, np.nan, level)
    return pa.table(
        {
            "level": level,
            "second": pa.array(second, from_pandas=True),
            "spare": pa.array(spare, from_pandas=True),
            "flow": 3 * level + 5 * rng.normal(size=ROWS),
        }
    )


pq.write_table(readings(0, 0.02), "train.parquet")
pq.write_table(readings(1, 0.15), "today.parquet")
