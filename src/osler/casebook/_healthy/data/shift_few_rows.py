"""More features than rows, and no covariance that could be inverted."""

import numpy as np

rng = np.random.default_rng(4)
loadings = rng.standard_normal((8, 200))
for name, rows in (("a.npy", 180), ("b.npy", 120)):
    hidden = rng.standard_normal((rows, 8))
    np.save(name, (hidden @ loadings + 0.3 * rng.standard_normal((rows, 200))).astype(np.float16))
