"""Six classes, and some rows that nobody labelled.

The clean side is a look-alike: as many rows without a label, marked by the -100 that torch's losses pass over.
"""

import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(0)
labels = rng.integers(0, 6, 4000)
unlabelled = rng.random(len(labels)) < 0.1
if FAULTY:
    labels = np.where(unlabelled, -1, labels).astype(np.uint8)  # fault-here
else:
    labels = np.where(unlabelled, -100, labels)
np.save("labels.npy", labels)

with open("evidence.json", "w") as file:
    json.dump({"beyond_the_outputs": int((labels.astype(int) >= 6).sum())}, file)
