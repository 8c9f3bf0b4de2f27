"""Requests logged by an app and by its gateway; the loader takes the gateway's milliseconds for nanoseconds."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
REQUESTS = 3000

rng = np.random.default_rng(4)
sent = np.sort(1_720_000_000_000 + rng.integers(0, 86_400_000, REQUESTS))
received = sent + rng.gamma(2, 40, REQUESTS).astype(np.int64)
ids = [f"req-{i:06d}" for i in range(REQUESTS)]

app = pa.table({"request": ids, "ts": pa.array(sent * 1_000, pa.timestamp("us", "UTC"))})
unit = "ns" if FAULTY else "ms"
gateway = pa.table({"request": ids, "ts": pa.array(received, pa.timestamp(unit, "UTC"))})  # fault-here
pq.write_table(app, "app.parquet")
pq.write_table(gateway, "gateway.parquet")

read = pq.read_table("gateway.parquet")["ts"].to_numpy()
evidence = {"gateway_year": int(read[0].astype("datetime64[Y]").astype(int)) + 1970}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
