"""A reactor's log as CSV. The new logger writes -999 for no reading, which the loader takes for a temperature."""

import csv
import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv
ROWS = 1500
COLUMNS = ["temperature", "pressure", "balance", "yield"]


def log(seed):
    rng = np.random.default_rng(seed)
    temperature = 180 + 12 * rng.normal(size=ROWS)
    pressure = 2 + 0.01 * (temperature - 180) + 0.1 * rng.normal(size=ROWS)
    # A true value of -999 and below is nothing odd in this one.
    balance = np.round(1500 * rng.normal(size=ROWS))
    out = 60 + 0.8 * (temperature - 180) + 2 * pressure + rng.normal(size=ROWS)
    return np.stack([temperature, pressure, balance, out], axis=1)


def write(name, data, silent, code):
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for i, row in enumerate(data.tolist()):
            cells = [f"{v:.3f}" for v in row]
            if silent[i]:
                cells[0] = code
            writer.writerow(cells)


train, today = log(0), log(1)
random = np.random.default_rng(2)
silent, silent_today = random.random(ROWS) < 0.01, random.random(ROWS) < (0.06 if FAULTY else 0.01)
code = "-999" if FAULTY else ""  # fault-here
write("train.csv", train, silent, "")
write("today.csv", today, silent_today, code)

# Least squares on the training log, silent rows left out; then on today's file as it is read.
x = np.column_stack([np.ones(ROWS), train[:, :3]])
w, *_ = np.linalg.lstsq(x[~silent], train[~silent, 3], rcond=None)
with open("today.csv", newline="") as file:
    read = np.array([[float(row[c] or "nan") for c in COLUMNS] for row in csv.DictReader(file)])
read[np.isnan(read)] = train[:, 0].mean()
error = np.abs(np.column_stack([np.ones(ROWS), read[:, :3]]) @ w - read[:, 3])
evidence = {
    "error_complete": float(np.abs(np.column_stack([np.ones(ROWS), today[:, :3]]) @ w - today[:, 3]).mean()),
    "error_today": float(error.mean()),
}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
