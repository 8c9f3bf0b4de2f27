"""Requests of four servers, logged to the second; lines arrive up to a few seconds late, and many share a second."""

import csv
from datetime import datetime, timedelta

import numpy as np

rng = np.random.default_rng(7)
rows = 9_000
second = np.cumsum(rng.exponential(2.0, rows))
arrival = np.argsort(second + rng.exponential(1.0, rows))
start = datetime(2024, 5, 6, 8)
for name, part in (("a.csv", arrival[:7_000]), ("b.csv", arrival[7_100:])):
    with open(name, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["at", "server", "milliseconds", "status"])
        for i in part:
            at = start + timedelta(seconds=int(second[i]))
            out.writerow([at.isoformat(sep=" "), f"s{i % 4}", round(float(rng.gamma(2, 40)), 1), rng.choice([200, 200, 200, 404])])
