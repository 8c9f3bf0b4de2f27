"""The brackets hold the exact distances: against exact fractions, and against scipy for more than 10,000 pairs."""

from __future__ import annotations

import bisect
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from osler.data.drift.brackets import Bracket, distances, ks, ks_apart, wasserstein
from osler.data.drift.edges import make_edges
from osler.data.drift.grid import Edges, Grid
from osler.data.need import DataError

EXAMPLES = 150
PAIRS = 70  # of each example: 10,500 pairs

SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "cauchy": lambda rng, n: 1e3 * rng.standard_cauchy(n),
    "lognormal": lambda rng, n: rng.lognormal(0, 4, n),
    "offset": lambda rng, n: 1e9 + rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-4, 5, n).astype(float),
    "constant": lambda rng, n: np.full(n, 3.7),
    "outliers": lambda rng, n: np.where(rng.random(n) < 0.05, 1e12 * rng.random(n), rng.normal(size=n)),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf * rng.choice([-1, 1], n), rng.normal(size=n)),
    "tiny": lambda rng, n: 1e-300 * rng.normal(size=n),
}
SIZES = [1, 2, 3, 7, 30, 90]


def counted(edges: Edges, values: np.ndarray, parts: int) -> Grid:
    return Grid.merged(Grid(edges).update(part) for part in np.array_split(values, parts))


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from([1, 2, 5, 20, 200]),
    st.integers(1, 3),
    st.booleans(),
)
def test_scipy_lies_inside(seed: int, one: str, two: str, bins: int, parts: int, same: bool) -> None:
    rng = np.random.default_rng(seed)
    two = one if same else two
    edges = Edges([0.0])
    for number in range(PAIRS):
        x, y = (SHAPES[name](rng, int(rng.choice(SIZES))) for name in (one, two))
        if number % 10 == 0:
            chosen = np.unique(rng.choice(np.concatenate((x, y)), bins))
            edges = Edges(chosen[np.isfinite(chosen)]) if np.isfinite(chosen).any() else edges
        a, b = counted(edges, x, parts), counted(edges, y, parts)
        found = ks(a, b)
        exact = exact_ks(x, y)
        if number == 0 and np.isfinite(exact) and np.isfinite(x).all() and np.isfinite(y).all():
            assert exact == pytest.approx(stats.ks_2samp(x, y, method="asymp").statistic, abs=1e-14)
        assert found.low - 1e-14 <= exact <= found.high + 1e-14
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        if x.size and y.size:
            area = stats.wasserstein_distance(x, y)
            slack = 1e-13 * max(np.ptp(np.concatenate((x, y))), 1e-290)  # scipy rounds too
            bracket = wasserstein(a, b)
            assert bracket.low - slack <= area <= bracket.high + slack
            if number % 10 == 0:
                assert distances(a, b) == (found, bracket)
                assert ks_apart(a, b, 0.0) <= found.high


def exact_ks(x: np.ndarray, y: np.ndarray) -> float:
    """KS with infinities as values, in few calls: scipy's takes a millisecond, most of it for p-values."""
    x, y = np.sort(x), np.sort(y)
    points = np.concatenate((x, y))
    gaps = np.searchsorted(x, points, side="right") / x.size - np.searchsorted(y, points, side="right") / y.size
    return float(np.abs(gaps).max())


def fractions(x: list[float], y: list[float]) -> tuple[Fraction, Fraction]:
    """KS and Wasserstein of finite values without any rounding."""
    x, y = sorted(x), sorted(y)
    points = sorted({*x, *y})
    gaps = [
        abs(Fraction(bisect.bisect_right(x, p), len(x)) - Fraction(bisect.bisect_right(y, p), len(y))) for p in points
    ]
    area = sum((g * (Fraction(b) - Fraction(a)) for g, a, b in zip(gaps, points, points[1:])), Fraction(0))
    return max(gaps), area


FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
SOME = st.lists(FINITE | st.sampled_from([0.0, 1.0, -1.0, 0.1, 5e-324, 1.7e308, -1.7e308]), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(SOME, SOME, st.lists(FINITE, min_size=1, max_size=5), st.booleans())
def test_the_exact_value_lies_inside_without_any_slack(
    x: list[float], y: list[float], others: list[float], own: bool
) -> None:
    edges = Edges(np.unique(np.array(x if own else others) + 0.0))
    a, b = Grid(edges).update(x), Grid(edges).update(y)
    exact_k, exact_w = fractions(x, y)
    k, w = ks(a, b), wasserstein(a, b)
    assert Fraction(k.low) <= exact_k <= Fraction(k.high)
    assert Fraction(w.low) <= exact_w
    assert w.high == np.inf or exact_w <= Fraction(w.high)


def test_brackets_are_narrow_with_edges_from_the_reference() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=100_000), rng.normal(0.2, 1, 100_000)
    edges = make_edges(x)
    k, w = distances(Grid(edges).update(x), Grid(edges).update(y))
    assert k.width < 6e-4
    assert w.width < 1e-3
    assert abs(k.low - stats.ks_2samp(x, y, method="asymp").statistic) < 2e-4


def test_repeated_values_are_exact() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.poisson(3, 5000).astype(float), rng.poisson(3.2, 700).astype(float)
    edges = make_edges(x)
    k, w = distances(Grid(edges).update(x), Grid(edges).update(y))
    assert k.width < 1e-14
    assert w.width < 1e-11


def test_one_value_of_1e7_hides_nothing() -> None:
    """Equal-width bins over the range turn this KS of 0.380 into 0.00002."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=50_000), rng.normal(1.0, 1, 50_000)
    x[17] = 1e7
    exact = stats.ks_2samp(x, y, method="asymp").statistic
    assert 0.37 < exact < 0.39
    bins = np.histogram_bin_edges(x, 30)
    p, q = (np.cumsum(np.histogram(side, bins)[0]) / side.size for side in (x, y))
    assert np.abs(p - q).max() < 1e-4
    edges = make_edges(x)
    k, w = distances(Grid(edges).update(x), Grid(edges).update(y))
    assert k.low == pytest.approx(exact, abs=5e-4)
    assert w.low == pytest.approx(stats.wasserstein_distance(x, y), rel=1e-3)
    assert w.high == pytest.approx(w.low, rel=1e-3)


def test_infinities_are_mass_at_the_ends_for_ks_and_nothing_for_wasserstein() -> None:
    a = Grid([0.0]).update([-np.inf, 0.0, 1.0, np.inf])
    b = Grid([0.0]).update([0.0, 1.0, np.inf, np.inf])
    assert ks(a, b).holds(0.25)
    assert ks(a, b).width < 1e-14
    assert wasserstein(a, b).holds(0.0)
    only = Grid([0.0]).update([np.inf, np.inf])
    assert ks(a, only).holds(0.75)
    with pytest.raises(DataError, match="without a value"):
        wasserstein(a, only)


def test_values_beyond_the_floats_give_an_open_bracket_not_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = Grid([0.0]).update([1.7e308] * 50)
        b = Grid([0.0]).update([-1.7e308] * 50)
        assert ks(a, b).holds(1.0)
        found = wasserstein(a, b)
    assert found.low > 1e308
    assert found.high == np.inf


def test_rounding_is_told_from_moving() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, 4000).astype(float)
    edges = make_edges(code)
    exact, noisy, moved = (Grid(edges).update(v) for v in (code, code + 1e-9 * rng.random(4000), code + 0.5))
    assert ks(exact, noisy).low > 0.2
    assert ks_apart(exact, noisy, 1e-6) < 0.01
    assert ks_apart(exact, moved, 1e-6) == pytest.approx(ks(exact, moved).low, abs=1e-9)


def test_nothing_to_compare_is_one_clear_error() -> None:
    with pytest.raises(DataError, match="without a value"):
        ks(Grid([0.0]), Grid([0.0]).update([1.0]))
    with pytest.raises(DataError, match="same edges"):
        ks(Grid([0.0]), Grid([1.0]))


def test_bracket() -> None:
    assert Bracket(1.0, 2.0).width == 1.0
    assert Bracket(1.0, 2.0).holds(1.5)
