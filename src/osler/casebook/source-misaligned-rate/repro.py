"""Two wheel sensors of one car; the right one was left in its power-saving mode."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
SECONDS = 1800

rng = np.random.default_rng(1)
start = 1_717_000_000_000_000_000


def record(hertz, jitter_s):
    """Times with the scheduler's jitter, two per cent of the samples lost, and one gap of ten seconds."""
    n = SECONDS * hertz
    t = np.arange(n) / hertz + rng.normal(0, jitter_s, n)
    t = t[(rng.random(n) > 0.02) & ~((t > 700) & (t < 710))]
    return np.sort(start + (t * 1e9).astype(np.int64))


left = record(10, 0.004)
right = record(1 if FAULTY else 10, 0.012)  # fault-here
for name, times in (("left", left), ("right", right)):
    speed = 20 + np.cumsum(rng.normal(0, 0.05, len(times)))
    pq.write_table(pa.table({"t": pa.array(times, pa.timestamp("ns", "UTC")), "speed": speed}), f"{name}.parquet")

steps = [float(np.median(np.diff(times))) for times in (left, right)]
evidence = {"ratio": steps[1] / steps[0], "interval_s": [step / 1e9 for step in steps]}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
