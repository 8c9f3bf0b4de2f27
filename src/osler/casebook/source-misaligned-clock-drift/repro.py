"""Door events that a server and a battery-powered logger both record; the logger never asks for the time."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
EVENTS = 6000
DAYS = 10
PPM = 30e-6

rng = np.random.default_rng(2)
start = 1_709_251_200_000_000_000
true = np.sort(rng.uniform(0, DAYS * 86400, EVENTS))
server = true + rng.normal(0, 0.03, EVENTS)
# radio delays with a long tail, as long in January as in March
logger = true + rng.exponential(0.15, EVENTS)
if FAULTY:
    logger = logger + PPM * true  # fault-here


def instants(seconds):
    return pa.array(start + (seconds * 1e9).astype(np.int64), pa.timestamp("ns", "UTC"))


ids = np.arange(EVENTS)
heard = rng.random(EVENTS) > 0.04
pq.write_table(pa.table({"event": ids, "seen_at": instants(server)}), "server.parquet")
pq.write_table(pa.table({"event": ids[heard], "seen_at": instants(logger[heard])}), "logger.parquet")

difference = (logger - server)[heard]
slope, level = np.polyfit(true[heard], difference, 1)
evidence = {"moved_s": float(slope * DAYS * 86400), "ppm": float(slope * 1e6), "jitter_s": float(np.std(difference - slope * true[heard] - level))}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
