"""Rows unlike those that training saw, with a stated rate of false alarms.

Each row gets a conformal p-value: the share of held-out reference rows that look at least as unusual. Under no change it is
uniform or larger whatever the data, and Benjamini-Hochberg over the rows keeps the share of false ones among the flagged below
the stated level (Bates, Candès, Lei, Romano & Sesia 2023, "Testing for outliers with conformal p-values", Annals of
Statistics 51).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from osler.core.settings.missing import Missing
from osler.data.missing.columns import Bools, Floats, Plan, spread
from osler.data.need import need

# Below so many rows to train on, the autoencoder learns nothing that the covariance does not say.
_AUTOENCODER_ROWS = 1_000
# Rows to train on: this share, or so many, or half of a small reference.
_TRAIN_SHARE, _TRAIN_ROWS = 0.3, 256


class Scorer(Protocol):
    """How unusual rows are."""

    name: str

    def score(self, rows: Floats) -> Floats:
        """(n,): the larger, the more unusual."""

    def column(self, rows: Floats) -> npt.NDArray[np.int64]:
        """(n,): the column that contributes most to each row's score."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Rows in robust units: asinh((x - median) / spread), so that a heavy tail is not far away."""

    centre: Floats
    size: Floats

    @classmethod
    def of(cls, rows: Floats) -> Scale:
        """From reference rows (n, d)."""
        q1, centre, q3 = np.percentile(rows, [25, 50, 75], axis=0)
        size = np.array([(b - a) / 1.349 or spread(column) for a, b, column in zip(q1, q3, rows.T)])
        return cls(centre, size)

    def __call__(self, rows: Floats) -> Floats:
        """(n, d)."""
        return np.asarray(np.arcsinh((rows - self.centre) / self.size))


class Isolation:
    """Isolation forest (Liu, Ting & Zhou 2008)."""

    name = "isolation"

    def __init__(self, rows: Floats, seed: int) -> None:
        ensemble = need("sklearn.ensemble", "data", "outliers by isolation")
        self._forest = ensemble.IsolationForest(random_state=seed).fit(rows)

    def score(self, rows: Floats) -> Floats:
        """(n,): minus the forest's score."""
        return -np.asarray(self._forest.score_samples(rows))

    def column(self, rows: Floats) -> npt.NDArray[np.int64]:
        """(n,): the column whose median in place of its value makes the row least unusual."""
        out = np.empty(rows.shape)
        for j in range(rows.shape[1]):
            plain = rows.copy()
            plain[:, j] = 0.0
            out[:, j] = self.score(plain)
        return np.asarray(out.argmin(1))


class Covariance:
    """Residual of each column given all others, from a shrunk covariance (Ledoit & Wolf 2004); the largest counts.

    With precision matrix P the residual of column j in its own standard deviations is (P (x - mean))_j / sqrt(P_jj).
    """

    name = "reconstruction"

    def __init__(self, rows: Floats) -> None:
        covariance = need("sklearn.covariance", "data", "outliers by reconstruction")
        fitted = covariance.LedoitWolf().fit(rows)
        self._mean, self._precision = fitted.location_, fitted.precision_
        # heavy-tailed columns have large residuals by nature: each is measured by its own
        self._size = np.maximum(np.quantile(np.abs(self._raw(rows)), 0.99, axis=0), 1e-9)

    def _raw(self, rows: Floats) -> Floats:
        return np.asarray((rows - self._mean) @ self._precision / np.sqrt(np.diag(self._precision)))

    def score(self, rows: Floats) -> Floats:
        """(n,)."""
        return np.asarray((np.abs(self._raw(rows)) / self._size).max(1))

    def column(self, rows: Floats) -> npt.NDArray[np.int64]:
        """(n,)."""
        return np.asarray((np.abs(self._raw(rows)) / self._size).argmax(1))


class Likelihood:
    """Minus the log-likelihood of the row under a variational autoencoder (torch)."""

    name = "reconstruction"

    def __init__(self, rows: Floats, seed: int, settings: Missing) -> None:
        from osler.data.missing.design import Design
        from osler.data.missing.reconstruct.vae import Autoencoder

        if len(rows) > settings.fit_rows:
            rows = rows[np.random.default_rng(seed).choice(len(rows), settings.fit_rows, replace=False)]
        plans = [
            Plan(str(j), (), False, float(c.min()), float(c.max()), float(c.mean()), spread(c), 0.0, len(c))
            for j, c in enumerate(rows.T)
        ]
        self._model = Autoencoder(Design(plans).learn(rows), seed).fit(rows, range(rows.shape[1]))

    def score(self, rows: Floats) -> Floats:
        """(n,)."""
        return self._model.surprise(rows)[0]

    def column(self, rows: Floats) -> npt.NDArray[np.int64]:
        """(n,)."""
        return np.asarray(self._model.surprise(rows)[1].argmax(1))


@dataclass(frozen=True, slots=True)
class Flagged:
    """Rows that one scorer flags.

    Attributes:
        scorer: its name.
        p: (m,) conformal p-values of all current rows.
        hit: (m,) those flagged at the level.
        column: (m,) the contributing column of flagged rows, -1 elsewhere.
        held: reference rows that calibrated.
        noticed: share of held-out reference rows with one cell swapped from another row that score above the 99th percentile
            of those without: what the scorer can see of broken relations between columns.
    """

    scorer: str
    p: Floats
    hit: Bools
    column: npt.NDArray[np.int64]
    held: int
    noticed: float


def flag(reference: Floats, current: Floats, settings: Missing, seed: int = 0) -> list[Flagged]:
    """Flagged rows by isolation and by reconstruction, each at half of the level `outlier_fdr`.

    Args:
        reference: (n, d) finite rows; three in ten train, the others calibrate: a p-value can be no smaller than one over
            their number, while a forest samples 256 rows a tree anyway.
        current: (m, d) finite rows.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(reference))
    cut = max(len(order) // 2 if len(order) < 2 * _TRAIN_ROWS else _TRAIN_ROWS, int(_TRAIN_SHARE * len(order)))
    scale = Scale.of(reference[order[:cut]])
    train, held = scale(reference[order[:cut]]), scale(reference[order[cut:]])
    rows = scale(current)
    broken = _swapped(held, random)
    scorers: list[Scorer] = [Isolation(train, seed)]
    if reference.shape[1] > 1:
        scorers.append(_reconstruction(train, held, broken, settings, seed))
    out = []
    for scorer in scorers:
        calibration = np.sort(scorer.score(held))
        scores = scorer.score(rows)
        above = len(calibration) - np.searchsorted(calibration, scores, "left")
        p = (1 + above) / (len(calibration) + 1)
        hit = benjamini_hochberg(p, settings.outlier_fdr / len(scorers))
        column = np.full(len(rows), -1, np.int64)
        if hit.any():
            column[hit] = scorer.column(rows[hit])
        out.append(Flagged(scorer.name, p, hit, column, len(held), _noticed(scorer, calibration, broken)))
    return out


def _reconstruction(train: Floats, held: Floats, broken: Floats, settings: Missing, seed: int) -> Scorer:
    """The covariance, or the autoencoder where it is installed and notices clearly more swapped cells."""
    from importlib.util import find_spec

    plain = Covariance(train)
    if settings.reconstruction == "covariance" or (
        settings.reconstruction == "auto" and (find_spec("torch") is None or len(train) < _AUTOENCODER_ROWS)
    ):
        return plain
    deep = Likelihood(train, seed, settings)
    if settings.reconstruction == "autoencoder":
        return deep
    seen = [_noticed(s, np.sort(s.score(held)), broken) for s in (plain, deep)]
    return deep if seen[1] > seen[0] + 0.02 else plain


def _swapped(rows: Floats, random: np.random.Generator) -> Floats:
    out: Floats = rows.copy()
    every = np.arange(len(rows))
    columns = random.integers(0, rows.shape[1], len(rows))
    out[every, columns] = rows[random.permutation(len(rows)), columns]
    return out


def _noticed(scorer: Scorer, calibration: Floats, broken: Floats) -> float:
    return float((scorer.score(broken) > np.quantile(calibration, 0.99)).mean())


def benjamini_hochberg(p: Sequence[float] | Floats, level: float) -> Bools:
    """(m,): the hypotheses rejected with a false discovery rate of at most `level` (Benjamini & Hochberg 1995)."""
    values = np.asarray(p, dtype=np.float64)
    m = len(values)
    if not m:
        return np.zeros(0, np.bool_)
    ordered = np.sort(values)
    below = np.flatnonzero(ordered <= level * np.arange(1, m + 1) / m)
    return np.asarray(values <= ordered[below[-1]]) if len(below) else np.zeros(m, np.bool_)


def fewest(held: int, rows: int, level: float) -> int:
    """Rows that must be more unusual than every held-out one for any to be flagged."""
    return int(np.ceil(rows / ((held + 1) * level)))
