"""KL divergence between Gaussians fitted to two samples, with covariances that are never singular."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Moments(NamedTuple):
    """Additive first and second moments: they merge by `+` and windows slide by `-`.

    Attributes:
        size: number of rows.
        total: sum of the rows, shape [d].
        outer: sum of the rows' outer products, shape [d, d].
    """

    size: int
    total: Floats
    outer: Floats

    @classmethod
    def of(cls, rows: Floats) -> Moments:
        """The moments of rows of shape [n, d]."""
        return cls(len(rows), rows.sum(axis=0), rows.T @ rows)

    @classmethod
    def empty(cls, features: int) -> Moments:
        """The moments of no rows."""
        return cls(0, np.zeros(features), np.zeros((features, features)))

    def plus(self, other: Moments) -> Moments:
        """The moments of both together."""
        return Moments(self.size + other.size, self.total + other.total, self.outer + other.outer)

    def minus(self, other: Moments) -> Moments:
        """The moments without those of `other`."""
        return Moments(self.size - other.size, self.total - other.total, self.outer - other.outer)

    @property
    def mean(self) -> Floats:
        """Mean of the rows, shape [d]."""
        return self.total / self.size

    @property
    def covariance(self) -> Floats:
        """Covariance with denominator n, shape [d, d]."""
        mean = self.mean
        return self.outer / self.size - np.outer(mean, mean)


def ledoit_wolf(rows: Floats, count: int | None = None) -> float:
    """The intensity in [0, 1] with which a sample covariance is best drawn towards the sphere of the same trace.

    Args:
        rows: shape [n, d].
        count: the size of sample that it is meant for; n where it is left out.

    Source: Ledoit & Wolf 2004, J. Multivariate Analysis 88, lemma 3.3.
    """
    centred = rows - rows.mean(axis=0)
    n, d = centred.shape
    covariance = centred.T @ centred / n
    fourth = float(np.mean(np.einsum("ij,ij->i", centred, centred) ** 2))
    squared = float(np.sum(covariance * covariance))
    sphere = float(np.trace(covariance)) ** 2 / d
    noise = (fourth - squared) / (count or n)
    distance = squared - sphere
    if count is not None and count != n:
        distance += noise - (fourth - squared) / n  # a smaller sample lies further from the sphere, by its noise
    return float(min(max(noise / distance, 0.0), 1.0)) if distance > 0 else 1.0


def oas(covariance: Floats, count: int) -> float:
    """The oracle-approximating intensity in [0, 1]; it needs the second moments only.

    Source: Chen, Wiesel, Eldar & Hero 2010, IEEE Trans. Signal Processing 58:10, equation 23 (as in scikit-learn).
    """
    d = len(covariance)
    mean_square = float(np.mean(covariance * covariance))
    mu = float(np.trace(covariance)) / d
    above = mean_square + mu * mu
    below = (count + 1) * (mean_square - mu * mu / d)
    return float(min(above / below, 1.0)) if below > 0 else 1.0


MIN_INTENSITY = 1e-6  # duplicated columns leave exact zeros in a covariance; this keeps them solvable in float64


def intensity(rows: Floats, count: int, method: str) -> float:
    """The intensity of shrinkage for comparing samples of `count` rows with `rows` (shape [n, d]).

    At most d / (d + count), the weight of d rows of the sphere among `count` rows. Ledoit–Wolf and OAS draw independent
    features to the sphere altogether, and with them every change of one variance or of one correlation: right for
    estimating a covariance, blind for comparing two.

    Args:
        method: `ledoit-wolf` or `oas`.
    """
    d = rows.shape[1]
    best = oas(Moments.of(rows).covariance, count) if method == "oas" else ledoit_wolf(rows, count)
    return float(max(min(best, d / (d + count)), MIN_INTENSITY))


def shrunk(covariance: Floats, weight: float) -> Floats:
    """`(1 - weight) covariance + weight trace(covariance) / d I`: positive definite for every weight above 0."""
    sphere = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    out = (1.0 - weight) * covariance
    out[np.diag_indices_from(out)] += weight * sphere
    return out


class Whitener:
    """The reference's side of the divergence, worked out once.

    Both covariances are drawn to their spheres with the same intensity. So a direction in which neither varies says
    nothing, instead of comparing two rounding errors.

    Attributes:
        mean: mean of the reference, shape [d].
        root: inverse of the Cholesky factor of its shrunk covariance, shape [d, d].
        weight: the intensity of shrinkage, applied to both sides.
    """

    __slots__ = ("mean", "root", "weight")

    def __init__(self, reference: Moments, weight: float) -> None:
        self.weight = max(weight, MIN_INTENSITY)
        factor = np.linalg.cholesky(shrunk(reference.covariance, self.weight))
        self.root: Floats = np.linalg.solve(factor, np.eye(len(factor)))
        self.mean = reference.mean

    def whitened(self, current: Moments) -> tuple[Floats, Floats]:
        """Mean [d] and covariance [d, d] of the current rows where the reference has mean 0 and covariance I."""
        covariance = shrunk(current.covariance, self.weight)
        return self.root @ (current.mean - self.mean), self.root @ covariance @ self.root.T

    def kl(self, current: Moments) -> float:
        """KL(current || reference) in nats, not negative.

        ½ [tr(Σr⁻¹Σc) + (μc-μr)ᵀ Σr⁻¹ (μc-μr) - d - ln(det Σc / det Σr)].
        """
        mean, covariance = self.whitened(current)
        diagonal = np.diagonal(np.linalg.cholesky(covariance))
        value = 0.5 * (np.trace(covariance) - len(mean) + mean @ mean) - np.log(diagonal).sum()
        return max(float(value), 0.0)


def gaussian_kl(current: Moments, reference: Moments, weight: float) -> float:
    """`Whitener(reference, weight).kl(current)` for a reference that is used once, in a third of the work."""
    weight = max(weight, MIN_INTENSITY)
    left, right = shrunk(current.covariance, weight), shrunk(reference.covariance, weight)
    inverse = np.linalg.inv(right)
    moved = current.mean - reference.mean
    value = 0.5 * (np.sum(inverse * left) - len(moved) + moved @ inverse @ moved)
    value += np.log(np.diagonal(np.linalg.cholesky(right))).sum() - np.log(np.diagonal(np.linalg.cholesky(left))).sum()
    return max(float(value), 0.0)


class Direction(NamedTuple):
    """A direction along which two samples differ, and its exact share of their divergence.

    Attributes:
        of: `mean` or `spread`.
        kl: its part of the divergence in nats; the parts of all directions add up to it.
        amount: for the mean how far it moved, for a spread the standard deviation, both in units of the reference's
            standard deviation along the direction.
        loadings: how strongly each feature takes part, squares adding up to 1, shape [d].
    """

    of: str
    kl: float
    amount: float
    loadings: Floats


def directions(whitener: Whitener, current: Moments, most: int = 3) -> list[Direction]:
    """The directions that make up most of KL(current || reference), largest first.

    In the coordinates in which the reference is a unit sphere the divergence is |m|²/2 for the mean's move m and
    ½ (λ - 1 - ln λ) for every eigenvalue λ of the current covariance.
    """
    mean, covariance = whitener.whitened(current)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-300)
    out = []
    moved = float(np.linalg.norm(mean))
    if moved > 0:
        out.append(Direction("mean", 0.5 * moved * moved, moved, _unit(whitener.root.T @ mean)))
    parts = 0.5 * (values - 1 - np.log(values))
    for i in np.argsort(parts)[::-1][:most]:
        loadings = _unit(whitener.root.T @ vectors[:, i])
        out.append(Direction("spread", float(parts[i]), float(np.sqrt(values[i])), loadings))
    return sorted(out, key=lambda direction: -direction.kl)[:most]


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


def marginal_kl(moved: Floats, spread: Floats) -> Floats:
    """KL between univariate Gaussians, feature by feature.

    Args:
        moved: difference of the means in standard deviations of the reference, shape [d].
        spread: standard deviation in units of the reference's, shape [d].
    """
    ratio = np.maximum(np.asarray(spread, dtype=np.float64) ** 2, 1e-12)
    return np.asarray(0.5 * (ratio - 1 - np.log(ratio) + moved * moved), dtype=np.float64)
