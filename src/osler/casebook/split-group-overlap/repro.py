"""Measurements from scans; those of one patient resemble each other."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(6)
patients, scans = 300, 5
patient = np.repeat(np.arange(patients), scans)
body = rng.normal(size=(patients, 8))
ill = rng.random(patients) < 0.4
x = body[patient] + 0.4 * rng.normal(size=(patients * scans, 8))
x[:, 0] += 0.8 * ill[patient]
if FAULTY:
    held_out = rng.random(len(patient)) < 0.2  # fault-here
else:
    held_out = np.isin(patient, rng.permutation(patients)[:60])

# clinics number their patients from 1, so the numbers of the wards are the same on both sides; that is no patient
table = pa.table({"patient": patient, "ward": patient % 7, **{f"m{i}": x[:, i] for i in range(8)}, "ill": ill[patient]})
pq.write_table(table.filter(pa.array(~held_out)), "train.parquet")
pq.write_table(table.filter(pa.array(held_out)), "eval.parquet")


def nearest_neighbour_accuracy():
    known = x[~held_out]
    found = [np.square(known - row).sum(axis=1).argmin() for row in x[held_out]]
    return float((ill[patient[~held_out]][found] == ill[patient[held_out]]).mean())


evidence = {
    "patients_on_both_sides": len(set(patient[held_out].tolist()) & set(patient[~held_out].tolist())),
    "nearest_neighbour_accuracy": nearest_neighbour_accuracy(),
}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
