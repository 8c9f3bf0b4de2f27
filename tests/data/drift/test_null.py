"""P-values keep their level, agree with scipy where it has the same test, and Holm's correction is Holm's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from osler.data.drift import null, summary
from osler.data.drift.edges import make_edges
from osler.data.drift.grid import Grid


def test_ks_bound_is_close_to_the_asymptotic_null_and_never_below_it() -> None:
    for n, m in ((1000, 5000), (200, 100_000), (10_000, 10_000)):
        for p in (0.05, 1e-3, 1e-6):
            d = null.ks_critical(p, n, m)
            assert null.ks_p(d, n, m) == pytest.approx(p)
            asymptotic = float(stats.kstwo.sf(d, round(n * m / (n + m))))
            assert asymptotic <= p * 1.02
            assert asymptotic > 0.6 * p


def test_ks_bound_of_equal_small_samples_holds_exactly() -> None:
    for n in (4, 10, 50, 200):
        for k in range(1, n):
            d = k / n
            assert null.ks_p(d, n, n) >= stats.ks_2samp(np.arange(n), np.arange(n) + k, method="exact").pvalue - 1e-9


def test_share_is_fishers_exact_test_with_doubled_tail() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, m = rng.integers(1, 400, 2)
        hits, before = int(rng.integers(0, n + 1)), int(rng.integers(0, m + 1))
        law = stats.hypergeom(n + m, hits + before, n)
        expected = min(1.0, 2 * (law.sf(hits - 1) if hits * (n + m) >= n * (hits + before) else law.cdf(hits)))
        if hits + before in (0, n + m):
            expected = 1.0
        assert null.share_p(hits, int(n), before, int(m)) == pytest.approx(expected, rel=1e-8, abs=1e-300)
    assert null.share_p(600_000, 1_000_000, 500_000, 1_000_000) == 0.0
    assert null.share_p(0, 10, 0, 0) == 1.0


def test_chi_square_is_scipys_once_rare_categories_are_pooled() -> None:
    one, two = np.array([500, 300, 100, 2, 1]), np.array([60, 30, 10, 1, 0])
    p, q = null.pooled(one, two)
    assert p.tolist() == [500, 300, 103]
    assert q.tolist() == [60, 30, 11]
    expected = stats.chi2_contingency(np.stack((p, q)), correction=False).pvalue
    assert null.chi_square_p(p, q) == pytest.approx(expected)
    assert null.chi_square_p(np.array([10]), np.array([3])) == 1.0
    assert null.chi_square_p(*null.pooled(np.array([1, 1, 1]), np.array([1, 1, 1]))) == 1.0


@pytest.mark.parametrize("shape", ["normal", "cauchy", "ties", "zeros"])
def test_wasserstein_p_is_a_p_value_on_identical_data(shape: str) -> None:
    rng = np.random.default_rng(1)
    draw = {
        "normal": lambda n: rng.normal(size=n),
        "cauchy": lambda n: rng.standard_cauchy(n),
        "ties": lambda n: rng.poisson(2, n).astype(float),
        "zeros": lambda n: np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(0, 2, n)),
    }[shape]
    found = []
    for seed in range(120):
        x, y = draw(300), draw(60)
        edges = make_edges(x, 64)
        found.append(null.wasserstein_p(Grid(edges).update(x), Grid(edges).update(y), 0.05, 99, seed))
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)
    assert np.mean(np.array(found) <= 0.5) <= 0.5 + 3 * math.sqrt(0.25 / 120)


def test_wasserstein_p_sees_what_moves_the_tail_alone() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20_000), rng.normal(size=2000)
    y[:60] += 8
    edges = make_edges(x)
    a, b = Grid(edges).update(x), Grid(edges).update(y)
    assert null.wasserstein_p(a, b, 1e-3, 5000) <= 1e-3
    assert null.wasserstein_p(a, b, 1e-3, 5000, seed=5) == null.wasserstein_p(a, b, 1e-3, 5000, seed=5)


def test_unseen_categories_are_expected_where_many_occur_once() -> None:
    assert null.unseen_p(0, 100, 0, 1000) == 1.0
    assert null.unseen_p(10, 200, 300, 1000) == 1.0
    assert null.unseen_p(20, 200, 0, 10_000) < 1e-6
    assert null.unseen_p(1, 200, 0, 1000) > 1e-3
    assert 0 < null.unseen_p(5, 5, 0, 10_000) < 1e-6


def test_holm_step_down() -> None:
    assert null.holm([]) == []
    assert null.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert null.holm([0.9, 0.9]) == [1.0, 1.0]


def test_summary_of_a_grid() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, 50_000)
    grid = Grid(make_edges(x)).update(x)
    assert summary.mean(grid) == pytest.approx(x.mean(), rel=1e-12)
    assert summary.deviation(grid) == pytest.approx(x.std(), rel=1e-3)
    assert summary.spread(grid) == pytest.approx(2, rel=0.02)
    assert summary.quantiles(grid, np.array([0.1, 0.5, 1.0])) == pytest.approx(
        np.quantile(x, [0.1, 0.5, 1.0]), abs=5e-3
    )
    assert summary.below(grid, 5.0) == pytest.approx((x <= 5).mean(), abs=1e-3)
    assert summary.spread(Grid([0.0]).update([3.0, 3.0])) == 0
    assert math.isnan(summary.spread(Grid([0.0])))
    assert math.isnan(summary.mean(Grid([0.0])))


def test_spread_of_mostly_one_value_is_the_deviation() -> None:
    x = np.append(np.zeros(900), np.arange(100.0))
    assert summary.spread(Grid(make_edges(x)).update(x)) == pytest.approx(x.std(), rel=1e-6)


def test_distances_of_categories() -> None:
    assert summary.jensen_shannon(np.array([5, 5]), np.array([50, 50])) == 0
    assert summary.jensen_shannon(np.array([5, 0]), np.array([0, 5])) == pytest.approx(1)
    assert summary.psi(np.array([50, 50]), np.array([50, 50])) == 0
    assert math.isfinite(summary.psi(np.array([10, 0]), np.array([0, 10])))
