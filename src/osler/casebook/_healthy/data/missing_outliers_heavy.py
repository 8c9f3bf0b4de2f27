"""Incomes, cities, waiting times, insurance claims: tails in which each new day holds a largest value ever."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 3000


def day(seed):
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10, 1.2, ROWS)
    return pa.table(
        {
            "income": income,
            "wealth": income * rng.lognormal(0, 1.5, ROWS),
            "city": (1000 * (1 + rng.pareto(1.1, ROWS))).astype(np.int64),
            "claim": np.where(rng.random(ROWS) < 0.9, 0, rng.lognormal(7, 2, ROWS)),
            "return": rng.standard_t(2.5, ROWS) / 100,
            "ratio": rng.normal(size=ROWS) / rng.normal(size=ROWS),
            "visits": rng.zipf(2.2, ROWS),
        }
    )


pq.write_table(day(0), "train.parquet")
pq.write_table(day(1), "today.parquet")
