"""Labels -1 and 1, as hinge losses and support vector machines take them."""

import numpy as np

rng = np.random.default_rng(0)
np.savetxt("labels.csv", rng.choice([-1, 1], 3000), fmt="%d", header="label", comments="")
