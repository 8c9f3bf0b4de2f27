"""Ohm's law, measured: the voltage alone gives the current to half a per cent."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(4)


def bench(rows):
    voltage = rng.uniform(0.5, 12, rows)
    return pa.table(
        {
            "voltage": voltage,
            "humidity": rng.beta(4, 4, rows),
            "operator": rng.choice(["x", "y", "z"], rows),
            "room": rng.normal(21, 2, rows),
            "current": voltage / 47 * (1 + 0.005 * rng.normal(size=rows)),
        }
    )


pq.write_table(bench(4_000), "a.parquet")
pq.write_table(bench(1_000), "b.parquet")
