"""Two samples of one distribution with 96 dependent features: the estimate of KL is above 2 nats by its noise alone."""

import numpy as np

rng = np.random.default_rng(0)
mixing = rng.standard_normal((96, 96)) / 6 + np.eye(96)
for name in ("a.npy", "b.npy"):
    np.save(name, (rng.standard_normal((1000, 96)) @ mixing).astype(np.float32))
