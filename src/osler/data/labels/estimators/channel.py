"""The noise channel: given labels come from the true ones through a matrix T that depends on the class alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.integer]

FLOOR = np.float32(1e-4)  # a probability below it says no more than that the class was not considered
_TINY = np.float32(1e-9)
_STEPS = 6
_INVERTIBLE = 30.0  # largest condition number: noise in the predictions grows by up to that factor


@dataclass(frozen=True, eq=False)
class Channel:
    """How a given label comes about: P(given = j | x) = Σ_k P(true = k | x) · T[k, j].

    Attributes:
        matrix: T, K × K float64, a row per true class; rows sum to 1.
        sharpness: power to which the predictions are raised first (1: as given, above 1: sharper).
        bias: K float64, added to the log of the predictions, or None.
        deconvolve: the predictions are of the given labels and T is taken out of them row by row; otherwise they are
            taken for P(true | x) once sharpness and bias are applied.
    """

    matrix: NDArray[np.float64]
    sharpness: float = 1.0
    bias: NDArray[np.float64] | None = None
    deconvolve: bool = True

    def clean(self, block: Floats) -> Floats:
        """P(true | x) without looking at the given labels.

        Args:
            block: K × B float32, columns sum to 1.
        """
        tempered = temper(block, self.sharpness, self.bias)
        return deconvolve(tempered, self.matrix) if self.deconvolve else tempered

    def posterior(self, block: Floats, given: Ints) -> Floats:
        """P(true | x, given), K × B float32, for the labels given to the B rows."""
        return weigh(self.clean(block), self.matrix, given)


def temper(block: Floats, sharpness: float, bias: NDArray[np.float64] | None = None) -> Floats:
    """softmax(sharpness · log p + bias) over the classes (Guo et al. 2017, arXiv:1706.04599: temperature 1 / sharpness)."""
    if sharpness == 1.0 and bias is None:
        return block
    z: Floats = np.log(np.maximum(block, FLOOR))
    z *= np.float32(sharpness)
    if bias is not None:
        z += bias.astype(np.float32)[:, None]
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= z.sum(axis=0)
    return z


def deconvolve(block: Floats, matrix: NDArray[np.float64]) -> Floats:
    """The q for which q T comes nearest to p in Kullback–Leibler divergence.

    Multiplicative updates q ← q · (T (p / qT)) (Richardson 1972; Lucy 1974), squared to converge in fewer steps. They start
    from p T⁻¹, cut off below (backward correction, Patrini et al. 2017), or, where T can hardly be inverted, from p.
    """
    t = matrix.astype(np.float32)
    if np.linalg.cond(matrix) <= _INVERTIBLE:
        return advance(np.maximum(np.linalg.inv(matrix).T.astype(np.float32) @ block, FLOOR), block, t)
    q: Floats = np.maximum(block, _TINY)
    for _ in range(_STEPS):
        q = advance(q, block, t)
    return q


def advance(q: Floats, block: Floats, t: Floats) -> Floats:
    """One squared Richardson–Lucy step on K × B blocks."""
    ratio = t.T @ q
    np.maximum(ratio, _TINY, out=ratio)
    np.divide(block, ratio, out=ratio)
    gain: Floats = t @ ratio
    gain *= gain
    gain *= q
    gain /= np.maximum(gain.sum(axis=0), _TINY)
    np.maximum(gain, _TINY, out=gain)
    return gain


def weigh(clean: Floats, matrix: NDArray[np.float64], given: Ints) -> Floats:
    """Bayes: P(true = k | x, given) ∝ P(true = k | x) · T[k, given]."""
    r: Floats = matrix.astype(np.float32)[:, given]
    r *= clean
    r /= np.maximum(r.sum(axis=0), _TINY)
    return r


def log_likelihood(predicted: Floats, given: Ints) -> NDArray[np.float64]:
    """Log of the probability that a K × B block of P(given | x) gives to each given label."""
    chosen = predicted[given, np.arange(len(given))]
    out: NDArray[np.float64] = np.log(np.maximum(chosen, FLOOR).astype(np.float64))
    return out


def row_normalised(counts: NDArray[np.float64], pseudo: float = 0.0) -> NDArray[np.float64]:
    """Counts as a noise matrix; a class without any count keeps its labels."""
    counts = counts + pseudo
    total = counts.sum(axis=1, keepdims=True)
    out: NDArray[np.float64] = np.where(total > 0, counts / np.where(total > 0, total, 1), np.eye(len(counts)))
    return out
