"""A shop's orders and its bank's payments: one writes local time and drops the zone, the other writes UTC."""

import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
ORDERS = 4000
BERLIN = ZoneInfo("Europe/Berlin")

rng = np.random.default_rng(0)
start = datetime(2024, 1, 8, tzinfo=timezone.utc)
seconds = np.sort(rng.uniform(0, 20 * 86400, ORDERS))
ids = rng.permutation(ORDERS) + 100_000
paid = [start + timedelta(seconds=float(s)) for s in seconds]
booked = [moment + timedelta(seconds=float(d)) for moment, d in zip(paid, rng.exponential(0.3, ORDERS))]

local = [moment.astimezone(BERLIN) for moment in paid]
if FAULTY:
    times = pa.array([moment.replace(tzinfo=None) for moment in local], pa.timestamp("us"))  # fault-here
else:
    times = pa.array(local, pa.timestamp("us", "Europe/Berlin"))
pq.write_table(pa.table({"order_id": ids, "paid_at": times}), "orders.parquet")

arrived = rng.random(ORDERS) > 0.02  # a few payments come a day later, in the next file
payments = pa.table({"order_id": ids, "paid_at": pa.array(booked, pa.timestamp("us", "UTC"))})
pq.write_table(payments.filter(pa.array(arrived)), "payments.parquet")

# What is in the files, read again: the instants as a reader that ignores zones joins them.
left = dict(zip(ids.tolist(), times.cast(pa.int64()).to_pylist()))
right = payments.filter(pa.array(arrived))
gaps = [left[i] - t for i, t in zip(right["order_id"].to_pylist(), right["paid_at"].cast(pa.int64()).to_pylist())]
evidence = {"median_gap_s": float(np.median(gaps)) / 1e6, "pairs": len(gaps)}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
