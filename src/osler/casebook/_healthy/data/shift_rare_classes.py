"""Clusters of very different size, and flags that are hardly ever set: the rare ones come and go from window to window."""

import numpy as np

rng = np.random.default_rng(5)
centres = 4 * rng.standard_normal((10, 6))
share = np.array([0.5, 0.25, 0.12, 0.06, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002])


def sample(rows):
    cluster = rng.choice(10, rows, p=share)
    flags = rng.random((rows, 4)) < np.array([0.001, 0.003, 0.01, 0.05])
    return np.concatenate([centres[cluster] + rng.standard_normal((rows, 6)), flags], axis=1)


np.save("a.npy", sample(10_000))
np.save("b.npy", sample(6_000))
