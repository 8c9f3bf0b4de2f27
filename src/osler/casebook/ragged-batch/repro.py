"""Tokenised sentences in a list column, read in order in batches of 32."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FAULTY = "--faulty" in sys.argv
BATCH = 32

rng = np.random.default_rng(6)
lengths = rng.integers(5, 60, 100 * BATCH)
if not FAULTY:
    # in buckets: each batch has one length, though no two batches need have the same
    lengths = np.sort(lengths)
    lengths = np.repeat(lengths.reshape(-1, BATCH).max(axis=1), BATCH)
sentences = [rng.integers(1, 30_000, n).tolist() for n in lengths]  # fault-here
pq.write_table(pa.table({"tokens": sentences, "label": rng.integers(0, 2, len(sentences))}), "sentences.parquet")

ragged = 0
for start in range(0, len(sentences), BATCH):
    try:
        np.stack([np.asarray(s) for s in sentences[start : start + BATCH]])
    except ValueError:
        ragged += 1
evidence = {"ragged_batches": ragged, "lengths": int(len(set(lengths.tolist())))}
print(evidence)
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
