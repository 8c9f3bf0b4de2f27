"""Start and length of rides: two coordinates rounded to five digits, as a phone gives them, and a fare on a grid."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(2)


def rides(rows, drivers):
    centre = rng.choice(3, rows)
    return pa.table(
        {
            "driver": [f"d{i}" for i in rng.choice(drivers, rows)],
            "latitude": (52.5 + 0.02 * centre + 0.01 * rng.normal(size=rows)).round(5),
            "longitude": (13.4 - 0.03 * centre + 0.02 * rng.normal(size=rows)).round(5),
            "fare": (rng.gamma(3, 4, rows) * 2).round() / 2,
        }
    )


pq.write_table(rides(40_000, np.arange(0, 900)), "a.parquet")
pq.write_table(rides(8_000, np.arange(900, 1_000)), "b.parquet")
