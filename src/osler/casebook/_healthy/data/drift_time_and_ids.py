"""Two consecutive weeks: times, serial numbers as text and comments go on, the measurements stay as they were."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(3)
WORDS = np.array("the a pump valve was is loud quiet again now fixed open".split())
for week, name in enumerate(("a.parquet", "b.parquet")):
    rows = 4_000
    at = 1_700_000_000_000 + week * 604_800_000 + np.sort(rng.integers(0, 604_800_000, rows))
    table = {
        "at": pa.array(at, pa.timestamp("ms")),
        "day": pa.array((at // 86_400_000).astype(np.int32), pa.date32()),
        "order": [f"{week}-{i}" for i in range(rows)],
        "comment": [" ".join(rng.choice(WORDS, 8)) for _ in range(rows)],
        "level": rng.normal(10, 2, rows),
        "open": rng.random(rows) < 0.4,
    }
    pq.write_table(pa.table(table), name)
