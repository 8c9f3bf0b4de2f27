"""Pairs of recordings that look out of step and are not: jitter, delays, bursts, daylight saving, declared rates."""

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_710_000_000_000_000_000
rng = np.random.default_rng(0)


def instants(seconds):
    return pa.array(START + (np.asarray(seconds) * 1e9).astype(np.int64), pa.timestamp("ns", "UTC"))


def write(name, **columns):
    pq.write_table(pa.table(columns), f"{name}.parquet")


# One event, two clocks with the jitter of a busy network, and a few delays of minutes.
seen = np.sort(rng.uniform(0, 7 * 86400, 4000))
late = rng.exponential(0.08, 4000) + np.where(rng.random(4000) < 0.02, rng.uniform(60, 300, 4000), 0)
write("camera", event=np.arange(4000), at=instants(seen + rng.normal(0, 0.05, 4000)))
write("server", event=np.arange(4000), at=instants(seen + late))

# Bursts: machines report when something happens, forty rows in a second and then nothing for an hour.
bursts = np.sort((rng.uniform(0, 3 * 86400, 80)[:, None] + rng.exponential(0.5, (80, 40))).ravel())
write("machine", part=np.arange(3200), at=instants(bursts))
write("historian", part=np.arange(3200), at=instants(bursts + rng.normal(0, 0.1, 3200)))

# Local time with its zone over the night in which the clocks go forward, against UTC.
night = [datetime(2024, 3, 30, tzinfo=timezone.utc) + timedelta(seconds=float(s)) for s in np.sort(rng.uniform(0, 2 * 86400, 2000))]
local = [moment.astimezone(ZoneInfo("Europe/Berlin")) for moment in night]
write("meter", reading=np.arange(2000), at=pa.array(local, pa.timestamp("us", "Europe/Berlin")))
write("grid", reading=np.arange(2000), at=pa.array(night, pa.timestamp("us", "UTC")))

# A fast sensor and a slow one, on purpose and said so.
fast = np.arange(36_000) / 10 + rng.normal(0, 0.004, 36_000)
slow = np.arange(3_600) + rng.normal(0, 0.02, 3_600)
write("accelerometer", at=instants(fast), g=rng.normal(0, 1, 36_000))
write("thermometer", at=instants(slow), celsius=20 + np.cumsum(rng.normal(0, 0.01, 3_600)))

# Events that have nothing to do with each other but the time of day at which people are awake.
def awake(n):
    moments = rng.uniform(0, 20 * 86400, 3 * n)
    return np.sort(moments[rng.random(3 * n) < 0.5 * (1 + np.sin(2 * np.pi * moments / 86400))])


write("calls", at=instants(awake(5000)))
write("visits", at=instants(awake(5000)))

# Ordered and delivered: one id, two moments, days apart by nature.
ordered = np.sort(rng.uniform(0, 30 * 86400, 3000))
delivered = ordered + rng.gamma(3, 0.7 * 86400, 3000)
by_delivery = np.argsort(delivered)
write("orders", order=np.arange(3000), at=instants(ordered))
write("deliveries", order=by_delivery, at=instants(delivered[by_delivery]))
