"""Orders of a shop as CSV: the year that an encoder was fitted on, and this week."""

import csv
import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(3)
METHODS, SHARES = ["card", "transfer", "invoice", "voucher"], [0.55, 0.25, 0.15, 0.05]


def orders(rows, first):
    return {
        "order": [f"o-{first + i}" for i in range(rows)],
        "payment": rng.choice(METHODS, rows, p=SHARES).tolist(),
        "shop": rng.choice([f"shop {i}" for i in range(40)], rows).tolist(),
        "amount": np.round(rng.gamma(2.0, 30.0, rows), 2).tolist(),
    }


def write(name, table):
    with open(name, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(table)
        out.writerows(zip(*table.values(), strict=True))


reference, current = orders(12_000, 0), orders(2_000, 12_000)
if FAULTY:
    current["payment"] = ["bank transfer" if p == "transfer" else p for p in current["payment"]]  # fault-here
else:
    current["payment"][17] = "cheque"  # one order in a way nobody paid before

write("reference.csv", reference)
write("current.csv", current)
known = set(reference["payment"])
evidence = {"unseen_share": sum(p not in known for p in current["payment"]) / len(current["payment"])}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
