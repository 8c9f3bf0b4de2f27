"""Daily sales of shops that opened at different times; the last quarter of each shop is for evaluation, after a week."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(3)
parts = {"a.parquet": [], "b.parquet": []}
for shop in range(25):
    days = 200 + 12 * shop
    day = np.datetime64("2022-01-01") + rng.integers(0, 400) + np.arange(days)
    weekday = day.astype(int) % 7
    sales = rng.gamma(20, 5, days) * (1 + 0.3 * (weekday > 4)) * (1 + shop / 20)
    table = pa.table({"day": day, "shop": [f"shop {shop}"] * days, "weekday": weekday, "lag": np.roll(sales, 1), "sales": sales})
    cut = days * 3 // 4
    parts["a.parquet"].append(table.slice(1, cut - 1))
    parts["b.parquet"].append(table.slice(cut + 7))
for name, tables in parts.items():
    # by day, as a warehouse keeps them: the shops lie side by side
    pq.write_table(pa.concat_tables(tables).sort_by("day"), name)
