"""A sensor whose level swings slowly: windows of an hour differ from each other, in the reference as in the current data."""

import numpy as np

rng = np.random.default_rng(1)
rows = 30_000
phase = np.arange(rows) / 5_000 * 2 * np.pi
level = np.stack([np.sin(phase), np.cos(phase), np.sin(2 * phase)], axis=1)
values = 1.5 * level + rng.standard_normal((rows, 3))
np.save("a.npy", values[:20_000])
np.save("b.npy", values[20_000:])
