"""Spectra of few samples, augmented with a little noise: no row equals another, and yet they are the same samples."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(11)


def augmented(samples, times):
    return np.concatenate([samples + 2e-3 * rng.normal(size=samples.shape) for _ in range(times)])


factors = rng.normal(size=(900, 5))
spectra = np.tanh(factors @ rng.normal(size=(5, 12))) + 0.1 * rng.normal(size=(900, 12))
if FAULTY:
    rows = rng.permutation(augmented(spectra, 4))  # fault-here
    train, evaluation = rows[:2_800], rows[2_800:]
else:
    train, evaluation = augmented(spectra[:700], 4), augmented(spectra[700:], 4)  # each side holds near copies of its own

for name, rows in (("train", train), ("eval", evaluation)):
    pq.write_table(pa.table({f"band{i}": rows[:, i] for i in range(12)}), f"{name}.parquet")

spread = train.std(axis=0)
nearest = [np.sqrt((((train - row) / spread) ** 2).mean(axis=1).min()) for row in evaluation[:200]]
evidence = {"nearest_median": float(np.median(nearest)), "equal_rows": len(set(map(bytes, train)) & set(map(bytes, evaluation)))}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
