"""Covariate shift of many columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

_RULE = ("covariate-shift",)


@dataclass(frozen=True, slots=True)
class Shift:
    """Covariate shift of many columns at once."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    window: int = threshold(
        1000,
        "rows in a window; the monitor judges the last this many",
        "a judgement: the usual size; at it the noise of MMD lies below `mmd_alert` (`tiers` in benchmarks/shift.py)",
        _RULE,
        Bounds(10, 1e7),
    )
    every: int = threshold(
        100,
        "new rows after which the monitor judges again, once its window is full",
        "a judgement: a tenth of the window, so that a break is seen early and windows are not judged over and over",
        _RULE,
        Bounds(1, 1e7),
    )
    min_rows: int = threshold(
        50,
        "rows below which a side is not judged",
        "a judgement: below it a permutation test of this level has next to no power",
        _RULE,
        Bounds(10, 1e6),
    )
    kl_alert: float = threshold(
        0.05,
        "floor of the alert tier: KL divergence of the current rows from the reference in nats, above what identical data give",
        "a mean that moves by 0.32 standard deviations in one direction has this divergence (x²/2)",
        _RULE,
        POSITIVE,
    )
    mmd_alert: float = threshold(
        0.03,
        "floor of the alert tier: MMD (the distance itself, not its square) under a Gaussian kernel with median bandwidth",
        "a judgement: identical data stay below it at 1,000 rows from 8 to 256 features (`tiers` in benchmarks/shift.py)",
        _RULE,
        POSITIVE,
    )
    kl_freeze: float = threshold(
        0.15,
        "floor of the freeze tier for the KL divergence in nats",
        "a mean that moves by 0.55 standard deviations in one direction has this divergence (x²/2)",
        _RULE,
        POSITIVE,
    )
    mmd_freeze: float = threshold(
        0.10,
        "floor of the freeze tier for MMD",
        "a judgement: a squared distance eleven times that of the alert tier",
        _RULE,
        POSITIVE,
    )
    level: float = threshold(
        0.01,
        "false-alarm rate of a judgement on identical data, shared between the statistics; thresholds rise from their floors to meet it",
        "a judgement: one false alert in a hundred full windows at most, and the floors make it rarer",
        _RULE,
        Bounds(1e-6, 0.5),
    )
    permutations: int = threshold(
        200,
        "relabellings of rows from which the null is estimated",
        "a judgement: the mean is known to 7 % of the null's spread; tails beyond it come from a three-moment fit",
        _RULE,
        Bounds(50, 1e5),
    )
    random_features: int = threshold(
        1024,
        "random Fourier features (cosines and sines together) of the streaming MMD",
        "1–2 % error against the exact MMD² at 64 features (`mmd` in benchmarks/shift.py)",
        _RULE,
        Bounds(32, 65536),
    )
    bandwidth: float = threshold(
        0.0,
        "bandwidth of the Gaussian kernel in units of standardised distance; 0: the median distance in the reference",
        "the median heuristic, Gretton et al. 2012 (JMLR 13), section 8",
        _RULE,
    )
    neighbours: int = threshold(
        5,
        "which nearest neighbour the kNN estimate of KL looks at",
        "Wang, Kulkarni & Verdú 2009 (IEEE Trans. IT 55:5): larger k trades variance for bias; 5 is a judgement between",
        _RULE,
        Bounds(1, 50),
    )
    shrinkage: str = threshold(
        "ledoit-wolf",
        "how strongly covariances are drawn towards a sphere before the Gaussian KL",
        "Ledoit & Wolf 2004 (J. Multivariate Analysis 88); `oas`: Chen et al. 2010 (IEEE Trans. SP 58:10)",
        _RULE,
        choices=("ledoit-wolf", "oas"),
    )
    max_reference: int = threshold(
        20_000,
        "rows of the reference that are held; beyond it they are drawn at random in stretches of 100 neighbours",
        "a judgement: the reference's own noise is then a twentieth of a window's",
        _RULE,
        Bounds(100, 1e7),
    )
    max_exact: int = threshold(
        2000,
        "rows a side in the exact comparison of the whole of both sides; a uniform sample beyond it",
        "a judgement: the table of pairs is then 64 MB",
        _RULE,
        Bounds(100, 20_000),
    )
    max_dimensions: int = threshold(
        256,
        "features above which the Gaussian KL is taken along this many random directions (MMD always sees all)",
        "a judgement: more second moments than that cannot be estimated from a window of 1,000 rows",
        _RULE,
        Bounds(1, 4096),
    )
    clip: float = threshold(
        2.0,
        "features are clipped at this multiple of the distance from the median to the 0.1 % and 99.9 % quantiles of the reference",
        "a judgement: at 6 standard deviations of a normal feature, so one wild value cannot decide for a thousand rows",
        _RULE,
        Bounds(1, 1e6),
    )
    constant_share: float = threshold(
        0.05,
        "share of current values that must differ from a feature that is constant in the reference",
        "a judgement: rarer than one in twenty, the feature is a flag that the reference was too small to show",
        _RULE,
        SHARE,
    )
    max_missing: float = threshold(
        0.5,
        "share of missing or non-finite values above which a column is left out instead of its rows",
        "a judgement: rows must be whole to have a joint distribution, and such a column would cost most of them",
        _RULE,
        SHARE,
    )
