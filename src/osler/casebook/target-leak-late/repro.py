"""Loans with the balance of the account, of which there is one value a day."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(10)
loans, days = 1_500, 120
balance = np.cumsum(rng.normal(0, 50, (loans, days)), axis=1) + 2_000
decided = rng.integers(30, 110, loans)
defaulted = rng.random(loans) < 0.2
balance[defaulted] -= np.maximum(np.arange(days) - decided[defaulted, None], 0) * 120.0  # it falls once nothing is paid back
if FAULTY:
    taken = np.full(loans, days - 1)  # fault-here
else:
    taken = decided - rng.integers(0, 3, loans)  # up to the very day of the decision

start = np.datetime64("2024-01-01", "ns")
day = np.timedelta64(24, "h")
table = pa.table(
    {
        "balance": balance[np.arange(loans), taken],
        "balance_at": start + taken * day,
        "decided": start + decided * day,
        "income": rng.lognormal(8, 0.5, loans),
        "defaulted": defaulted,
    }
)
pq.write_table(table.slice(0, 1_200), "train.parquet")
pq.write_table(table.slice(1_200), "eval.parquet")

evidence = {"balances_after_decision": int((taken > decided).sum())}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
