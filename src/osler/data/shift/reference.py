"""The reference's side of covariate shift: fitted once, small enough to ship, compared with any number of windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.core.settings.shift import Shift
from osler.data.need import DataError
from osler.data.shift import fourier
from osler.data.shift.fourier import FeatureSum, FourierFeatures
from osler.data.shift.gaussian import Moments, Whitener, gaussian_kl, intensity
from osler.data.shift.kernel import distance, median_bandwidth
from osler.data.shift.null import Null
from osler.data.shift.scaler import Scaler
from osler.data.shift.stretches import correlation_time, deal, stretch
from osler.data.shift.tiers import Threshold, Tier, calibrated, excess

Floats = NDArray[np.float64]
_OWN_WINDOWS = 32  # consecutive windows of the reference that are compared with the rest of it, at most


class WindowShift(NamedTuple):
    """How far one window lies from the reference.

    Attributes:
        kl: Gaussian KL(window || reference) in nats above what identical data give, not negative.
        mmd: MMD (not squared), from the unbiased estimate.
        kl_p, mmd_p: permutation p-values, not below 1 / (permutations + 1).
        tier: the higher of the two statistics' tiers.
    """

    kl: float
    mmd: float
    kl_p: float
    mmd_p: float
    tier: Tier


class State(NamedTuple):
    """Additive state of a set of standardised rows: it merges by `plus`, and parts are taken out by `minus`.

    Attributes:
        moments: in which the Gaussian KL is taken, q features.
        features: sums of the random features.
        total, square: sum and sum of squares of every feature, shape [d].
    """

    moments: Moments
    features: FeatureSum
    total: Floats
    square: Floats

    def plus(self, other: State) -> State:
        """Both sets together."""
        return State(
            self.moments.plus(other.moments),
            self.features.plus(other.features),
            self.total + other.total,
            self.square + other.square,
        )

    def minus(self, other: State) -> State:
        """The set without the rows of `other`."""
        return State(
            self.moments.minus(other.moments),
            self.features.minus(other.features),
            self.total - other.total,
            self.square - other.square,
        )

    @property
    def mean(self) -> Floats:
        """Mean of every feature in standard deviations of the reference, shape [d]."""
        return self.total / self.moments.size

    @property
    def spread(self) -> Floats:
        """Standard deviation of every feature in units of the reference's, shape [d]."""
        mean = self.mean
        return np.asarray(np.sqrt(np.maximum(self.square / self.moments.size - mean * mean, 0.0)), dtype=np.float64)


class Reference:
    """A fitted reference.

    Attributes:
        names: features that take part, in order.
        scaler: brings rows into the reference's units.
        basis: random orthogonal directions in which the Gaussian KL is taken, shape [d, q]; None: all features.
        random: the random features of the streaming MMD.
        state: the reference's own sums.
        whitener: the reference's side of the Gaussian KL.
        bandwidth: of the kernel, in standardised units.
        window: rows in a window, for which the nulls hold.
        time: rows over which the reference's rows are alike; 1 where they are independent.
        kl_null, mmd_null: nulls of the KL divergence and of MMD² at this window size; None where the reference is too
            small to be split.
        own_kl, own_mmd: largest KL (above the null's mean) and MMD among consecutive windows of the reference itself.
        settings: the settings it was fitted with.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        scaler: Scaler,
        basis: Floats | None,
        random: FourierFeatures,
        state: State,
        weight: float,
        bandwidth: float,
        window: int,
        time: float,
        kl_null: Null,
        mmd_null: Null,
        own_kl: float,
        own_mmd: float,
        settings: Shift,
    ) -> None:
        self.names = names
        self.scaler = scaler
        self.basis = basis
        self.random = random
        self.state = state
        self.whitener = Whitener(state.moments, weight)
        self.bandwidth = bandwidth
        self.window = window
        self.time = time
        self.kl_null = kl_null
        self.mmd_null = mmd_null
        self.own_kl = own_kl
        self.own_mmd = own_mmd
        self.settings = settings

    @classmethod
    def fit(
        cls,
        rows: Floats,
        names: tuple[str, ...],
        settings: Shift,
        *,
        window: int | None = None,
        seed: int = 0,
        progress: Progress = quiet,
    ) -> Reference:
        """Fit to whole, finite rows of shape [n, d] in their order, none of whose features is constant.

        A reference of fewer than two windows is split in halves, and windows become as small as these.

        Raises:
            DataError: fewer than twice `settings.min_rows` rows.
        """
        if len(rows) < 2 * settings.min_rows:
            raise DataError(
                f"a reference of {len(rows)} whole rows is too small: give at least {2 * settings.min_rows}"
            )
        window = min(window or settings.window, len(rows) // 2)
        scaler = Scaler.of(rows, settings.clip)
        scaled = scaler.apply(rows)
        small = scaled.astype(np.float32)
        bandwidth = settings.bandwidth or median_bandwidth(small)
        random = FourierFeatures(scaled.shape[1], settings.random_features, bandwidth, seed)
        features = np.concatenate([random.of(part) for part in _blocks(small)])
        basis = _basis(scaled.shape[1], settings.max_dimensions, seed)
        projected = scaled if basis is None else scaled @ basis
        weight = intensity(projected, window, settings.shrinkage)
        state = _state(scaled, projected, features)
        parts = _Parts(scaled, projected, features, state, weight)
        time = correlation_time(scaled)
        kl, mmd = parts.nulls(window, min(stretch(time), window), settings.permutations, seed, progress)
        own_kl, own_mmd = parts.own(window)
        return cls(
            names,
            scaler,
            basis,
            random,
            state,
            weight,
            bandwidth,
            window,
            time,
            kl,
            mmd,
            own_kl - kl.mean,
            own_mmd,
            settings,
        )

    def of(self, rows: Floats) -> State:
        """The state of whole, finite rows in their own units, shape [n, d]."""
        scaled = self.scaler.apply(rows)
        projected = scaled if self.basis is None else scaled @ self.basis
        features = self.random.sum(scaled.astype(np.float32))
        return State(Moments.of(projected), features, scaled.sum(axis=0), np.einsum("ij,ij->j", scaled, scaled))

    def empty(self) -> State:
        """The state of no rows."""
        none = np.zeros(len(self.names))
        return State(
            Moments.empty(len(self.state.moments.total)), FeatureSum(0, np.zeros(self.random.size)), none, none
        )

    def thresholds(self, windows: int = 1) -> tuple[Threshold, Threshold]:
        """Thresholds of KL and of MMD when so many windows are judged together.

        The false-alarm rate is shared between both statistics and all windows (Bonferroni).
        """
        s = self.settings
        level = s.level / (2 * windows)
        at_level = distance(self.mmd_null.quantile(level))
        kl = calibrated(s.kl_alert, s.kl_freeze, excess(self.kl_null, level), self.kl_null.mean, self.own_kl)
        typical = distance(float(np.quantile(self.mmd_null.draws, 0.75)))
        return kl, calibrated(s.mmd_alert, s.mmd_freeze, at_level, typical, self.own_mmd)

    @property
    def homogeneous(self) -> bool:
        """Whether the reference's own consecutive windows differ no more than random ones do."""
        kl = excess(self.kl_null, self.settings.level / (2 * _OWN_WINDOWS))
        mmd = distance(self.mmd_null.quantile(self.settings.level / (2 * _OWN_WINDOWS)))
        return self.own_kl <= max(kl, self.settings.kl_alert) and self.own_mmd <= max(mmd, self.settings.mmd_alert)

    def judge(self, state: State, thresholds: tuple[Threshold, Threshold]) -> WindowShift:
        """The shift of a window from the reference."""
        raw = self.whitener.kl(state.moments)
        squared = fourier.mmd_squared(state.features, self.state.features)
        kl, mmd = max(raw - self.kl_null.mean, 0.0), distance(squared)
        tier = max(thresholds[0].tier(kl), thresholds[1].tier(mmd))
        return WindowShift(kl, mmd, self.kl_null.p(raw), self.mmd_null.p(squared), tier)


def _blocks(rows: NDArray[np.float32], size: int = 4096) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _sum(features: NDArray[np.float32]) -> FeatureSum:
    return FeatureSum(len(features), features.sum(axis=0, dtype=np.float64))


def _state(scaled: Floats, projected: Floats, features: NDArray[np.float32]) -> State:
    return State(Moments.of(projected), _sum(features), scaled.sum(axis=0), np.einsum("ij,ij->j", scaled, scaled))


def _basis(features: int, most: int, seed: int) -> Floats | None:
    """Orthogonal directions, uniformly random; None where all features fit.

    They must not depend on the reference: its own principal components overstate its variance along them, and every
    fresh sample would look shifted.
    """
    if features <= most:
        return None
    rng = np.random.default_rng(seed)
    return np.ascontiguousarray(np.linalg.qr(rng.standard_normal((features, most)))[0])


class _Parts:
    """Parts of the reference against the rest of it."""

    def __init__(
        self, scaled: Floats, projected: Floats, features: NDArray[np.float32], state: State, weight: float
    ) -> None:
        self._scaled, self._projected, self._features = scaled, projected, features
        self._state, self._weight = state, weight

    def _compared(self, at: NDArray[np.intp] | slice) -> tuple[float, float]:
        """KL and MMD² of the part at these rows."""
        part = _state(self._scaled[at], self._projected[at], self._features[at])
        rest = self._state.minus(part)
        kl = gaussian_kl(part.moments, rest.moments, self._weight)
        return kl, fourier.mmd_squared(part.features, rest.features)

    def nulls(self, window: int, length: int, draws: int, seed: int, progress: Progress) -> tuple[Null, Null]:
        """Nulls of KL and MMD² from windows that are drawn at random, in stretches of `length` rows."""
        rng = np.random.default_rng(seed)
        out = np.empty((draws, 2))
        for i in range(draws):
            out[i] = self._compared(deal(rng, len(self._scaled), window, length))
            progress("the null of a window", i + 1, draws)
        return Null(out[:, 0]), Null(out[:, 1])

    def own(self, window: int) -> tuple[float, float]:
        """The largest KL and MMD of a consecutive window.

        A reference that wanders (by day, by season) has windows that differ more than stretches of it do. What the
        reference does by itself is no shift.
        """
        last = len(self._scaled) - window
        count = min(_OWN_WINDOWS, 1 + 2 * last // window)
        kl, mmd = 0.0, 0.0
        for start in np.linspace(0, last, count).astype(int):
            one, other = self._compared(slice(start, start + window))
            kl, mmd = max(kl, one), max(mmd, distance(other))
        return kl, mmd
