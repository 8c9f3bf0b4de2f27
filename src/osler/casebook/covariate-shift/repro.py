"""Images are embedded by a fixed network, at training time and in the service."""

import json
import sys

import numpy as np

FAULTY = "--faulty" in sys.argv
rng = np.random.default_rng(3)

PIXELS, HIDDEN, WIDTH = 144, 96, 48
patterns = rng.standard_normal((12, PIXELS))
first = rng.standard_normal((PIXELS, HIDDEN)) / np.sqrt(PIXELS)
second = rng.standard_normal((HIDDEN, WIDTH)) / np.sqrt(HIDDEN)


def photograph(count):
    """Grey values from 0 to 255."""
    scene = rng.standard_normal((count, 12)) @ patterns / 4 + rng.standard_normal((count, PIXELS)) / 2
    return np.clip(128 + 32 * scene, 0, 255)


def embed(images):
    return (np.maximum(images @ first, 0) @ second).astype(np.float32)


def normalise(images):
    return (images - 128) / 40


reference = embed(normalise(photograph(4000)))
if FAULTY:
    current = embed(photograph(1500) / 255)  # fault-here
else:
    # other images, and a third of the rows: the estimate of KL is far above 0 by its noise alone
    current = embed(normalise(photograph(1500)))

np.save("reference.npy", reference)
np.save("current.npy", current)

# A linear classifier, fitted on one half, tells the two sets apart on the other half.
both = np.concatenate([reference[:1500], current])
both = (both - both.mean(0)) / both.std(0)
side = np.repeat([-1.0, 1.0], 1500)
half = rng.permutation(3000)
fit, test = half[:1500], half[1500:]
weights = np.linalg.solve(both[fit].T @ both[fit] + 10 * np.eye(WIDTH), both[fit].T @ side[fit])
score = both[test] @ weights
order = np.argsort(np.argsort(score))
positive = side[test] > 0
auc = (order[positive].mean() - (positive.sum() - 1) / 2) / (~positive).sum()
evidence = {"told_apart": float(auc)}
with open("evidence.json", "w") as file:
    json.dump(evidence, file)
print(evidence)
