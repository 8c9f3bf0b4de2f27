"""Heavy-tailed and skewed features with a few wild values: variances are ruled by single rows."""

import numpy as np

rng = np.random.default_rng(2)


def sample(rows):
    values = rng.standard_t(2.5, (rows, 12))
    values[:, 4:8] = np.exp(1.2 * values[:, 4:8].clip(-6, 6))
    values[:, 8:] = rng.pareto(1.5, (rows, 4))
    values[rng.integers(0, rows, 3), rng.integers(0, 12, 3)] = 1e9
    return values


np.save("a.npy", sample(6000))
np.save("b.npy", sample(3000))
