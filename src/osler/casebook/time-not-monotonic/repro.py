"""A meter that writes every quarter of an hour, in UTC or by the clock on the wall of a house in Berlin."""

import csv
import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(2)
start = datetime(2024, 10, 1, tzinfo=timezone.utc)
instants = [start + timedelta(minutes=15 * i) for i in range(96 * 45)]
if FAULTY:
    written = [t.astimezone(ZoneInfo("Europe/Berlin")).replace(tzinfo=None) for t in instants]  # fault-here
else:
    # two rows carry the same hour on the wall here as well, and the offset beside it tells them apart
    written = [t.astimezone(ZoneInfo("Europe/Berlin")) for t in instants]
energy = np.cumsum(rng.gamma(2.0, 0.2, len(written)))

cut = 96 * 36
for name, part in (("train.csv", slice(0, cut)), ("eval.csv", slice(cut, None))):
    with open(name, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "energy"])
        rows.writerows((t.isoformat(), round(float(e), 3)) for t, e in zip(written[part], energy[part]))

read = [datetime.fromisoformat(t.isoformat()) for t in written]
evidence = {"steps_back": sum(b < a for a, b in zip(read, read[1:])), "readings": len(read)}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
