"""Turbines. Two sensor tables are put side by side by position; one batch of one of them came in another order."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
ROWS = 4000


def turbines(seed):
    rng = np.random.default_rng(seed)
    wind = rng.weibull(2, ROWS) * 9
    power = 20 * wind + 8 * rng.standard_t(4, ROWS)
    speed = 1.5 * wind + 0.6 * rng.normal(size=ROWS)
    temperature = 40 + 2 * wind + 3 * rng.normal(size=ROWS)
    return {"wind": wind, "power": power, "speed": speed, "temperature": temperature}


train, today = turbines(0), turbines(1)
before = today["power"].copy()
if FAULTY:
    order = np.argsort(today["speed"][1000:1600])
    for name in ("power", "temperature"):
        today[name][1000:1600] = today[name][1000:1600][order][::-1]  # fault-here
pq.write_table(pa.table(train), "train.parquet")
pq.write_table(pa.table(today), "today.parquet")

# Power follows the wind to about 11; count the rows that miss it by more than six times that.
slope = float(train["power"] @ train["wind"] / (train["wind"] @ train["wind"]))
evidence = {
    "misfits": int((np.abs(today["power"] - slope * today["wind"]) > 66).sum()),
    "same_values": bool(np.array_equal(np.sort(before), np.sort(today["power"]))),
}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
