"""Channel-calibrated correction: the clean posterior is the prediction, sharpened and shifted, seen through T.

T comes from the given labels of the most confident rows of each predicted class (anchors, Patrini et al. 2017,
arXiv:1609.03683) or from another estimator; the sharpness and one bias per class maximise the likelihood of the given labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osler.data.labels.estimators.channel import FLOOR, Channel, Floats, Ints, row_normalised
from osler.data.need import need

ANCHORS = 0.3  # share of each predicted class that serves as anchors
_FEWEST = 30
_RIDGE = 1e-3
_LOG_SHARPNESS = (-2.5, 2.5)
_BIAS = (-3.0, 3.0)


def anchored(block: Floats, given: Ints, share: float = ANCHORS) -> NDArray[np.float64]:
    """T[k, :]: how often each label was given among the most confident rows predicted as k, one pseudo-count a row."""
    classes = len(block)
    predicted = block.argmax(axis=0)
    confidence = block[predicted, np.arange(len(predicted))]
    counts = np.zeros((classes, classes))
    for k in range(classes):
        mine = np.flatnonzero(predicted == k)
        if not len(mine):
            counts[k, k] = len(given)
            continue
        take = min(len(mine), max(_FEWEST, int(share * len(mine))))
        best = mine[np.argsort(-confidence[mine], kind="stable")[:take]]
        counts[k] = np.bincount(given[best], minlength=classes)
    return row_normalised(counts, 1 / classes)


def calibrate(block: Floats, given: Ints, matrix: NDArray[np.float64]) -> Channel:
    """Sharpness and class biases of the clean posterior, by the likelihood of the given labels through T.

    Args:
        block: K × n float32 predictions.
        given: n given labels.
        matrix: T; the identity calibrates the predictions themselves.

    Returns:
        A channel that does not deconvolve.

    Raises:
        DataError: scipy is not installed.
    """
    minimize = need("scipy.optimize", "data", "fitting the noise channel").minimize
    classes = len(block)
    logs = np.log(np.maximum(block, FLOOR))
    logs -= logs.mean(axis=0)
    through = np.maximum(matrix, 1e-12)[:, given].astype(np.float32)

    def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = logs * np.float32(np.exp(x[0]))
        z += x[1:].astype(np.float32)[:, None]
        z -= z.max(axis=0)
        np.exp(z, out=z)
        z /= z.sum(axis=0)
        r = z * through
        seen = np.maximum(r.sum(axis=0), np.float32(1e-12))
        r /= seen
        z -= r  # the gradient of -log(seen) by the logits
        slope = np.einsum("kn,kn->", z, logs, dtype=np.float64) / len(given) * np.exp(x[0])
        gradient = np.concatenate([[slope], z.mean(axis=1, dtype=np.float64) + 2 * _RIDGE * x[1:]])
        return float(-np.log(seen.astype(np.float64)).mean() + _RIDGE * (x[1:] ** 2).sum()), gradient

    bounds = [_LOG_SHARPNESS, *[_BIAS] * classes]
    found = minimize(
        loss, np.zeros(classes + 1), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25, "ftol": 1e-6}
    )
    return Channel(matrix, float(np.exp(found.x[0])), np.asarray(found.x[1:]), deconvolve=False)
