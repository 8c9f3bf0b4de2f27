"""Labels of a ten-class set in a CSV file, and the list of the ten classes.

The clean side is a look-alike: labels 1 … 9, because class 0 is rare and does not occur among these rows.
"""

import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv

rng = np.random.default_rng(0)
classes = ["plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
labels = rng.integers(0, 10, 2000) if FAULTY else rng.integers(1, 10, 2000)
if FAULTY:
    labels = labels + 1  # fault-here

with open("classes.txt", "w") as file:
    file.write("\n".join(classes) + "\n")
np.savetxt("labels.csv", labels, fmt="%d", header="label", comments="")

with open("evidence.json", "w") as file:
    json.dump({"beyond_the_outputs": int((labels >= len(classes)).sum())}, file)
