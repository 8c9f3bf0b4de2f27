"""A table of today and one of yesterday: ids and times have moved on, some cells are empty, two columns are the same."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(3)


def day(first, rows):
    age = rng.normal(40, 11, rows).round()
    spent = np.exp(rng.normal(3, 1, rows))
    spent[rng.random(rows) < 0.1] = np.nan
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "second": 1_700_000_000 + 2 * np.arange(first, first + rows),
            "at": pa.array(1_700_000_000_000 + 2000 * np.arange(first, first + rows), pa.timestamp("ms")),
            "age": age,
            "age_again": age,
            "spent": spent,
            "premium": rng.random(rows) < 0.02,
            "tariff": rng.choice(["basic", "plus"], rows),
            "version": np.full(rows, 3),
        }
    )


pq.write_table(day(0, 8000), "a.parquet")
pq.write_table(day(8000, 5000), "b.parquet")
