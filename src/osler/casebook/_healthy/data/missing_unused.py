"""Half of the comments, a third of the fax numbers: holes in what no prediction depends on."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1500


def customers(seed, holes):
    rng = np.random.default_rng(seed)
    usage = rng.gamma(4, 20, ROWS)
    months = rng.integers(1, 60, ROWS).astype(float)
    fax = rng.normal(size=ROWS)
    comment = rng.choice(["fine", "late", "rude"], ROWS).astype(object)
    left = (rng.random(ROWS) < 1 / (1 + np.exp(0.06 * (usage - 80) + 0.08 * (months - 30)))).astype(int)
    fax[rng.random(ROWS) < 0.3 * holes] = np.nan
    comment[rng.random(ROWS) < 0.5 * holes] = None
    months[rng.random(ROWS) < 0.005] = np.nan
    return pa.table(
        {
            "usage": usage,
            "months": pa.array(months, from_pandas=True),
            "fax": pa.array(fax, from_pandas=True),
            "comment": pa.array(comment.tolist(), pa.string()),
            "left": left,
        }
    )


pq.write_table(customers(0, 0), "train.parquet")
pq.write_table(customers(1, 1), "today.parquet")
