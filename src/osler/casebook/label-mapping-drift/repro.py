"""Twelve classes in folders 0 … 11; training lists them by number, serving by name.

The clean side is a look-alike: serving keeps its list as a mapping whose entries stand in another order in the file.
"""

import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv

folders = [str(k) for k in range(12)]
with open("training.json", "w") as file:
    json.dump(sorted(folders, key=int), file)

if FAULTY:
    serving = dict(enumerate(sorted(folders)))  # fault-here
else:
    serving = {k: folders[k] for k in (3, 11, 0, 7, 1, 2, 10, 4, 9, 5, 8, 6)}
with open("serving.json", "w") as file:
    json.dump({"id2label": serving}, file)

predicted = np.random.default_rng(0).integers(0, 12, 5000)
np.save("predictions.npy", predicted)

named = np.array([int(serving[int(k)]) for k in predicted])
with open("evidence.json", "w") as file:
    json.dump({"wrongly_named": float((named != predicted).mean())}, file)
