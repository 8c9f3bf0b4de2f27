"""A calm month cut into days: many windows, one left over with a few rows, a column that swings within each day."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(6)
DAY = 86_400
for name, days in (("a.parquet", 28), ("b.parquet", 28)):
    rows = days * 300 + 12
    at = np.sort(rng.integers(0, days * DAY, rows))
    at[-12:] = days * DAY + np.arange(12)
    table = {
        "at": pa.array(1_700_006_400 + at, pa.timestamp("s", tz="Europe/Berlin")),
        "load": 50 + 20 * np.sin(2 * np.pi * at / DAY) + rng.normal(0, 5, rows),
        "tail": rng.standard_t(2, rows),
        "state": np.array(["on", "off", "idle"])[rng.choice(3, rows, p=[0.6, 0.3, 0.1])],
    }
    pq.write_table(pa.table(table), name)
