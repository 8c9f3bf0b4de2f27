"""The statistics against closed forms, brute force and scikit-learn's covariances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from osler.data.shift import fourier, kernel
from osler.data.shift.gaussian import (
    Moments,
    Whitener,
    directions,
    gaussian_kl,
    intensity,
    ledoit_wolf,
    marginal_kl,
    oas,
    shrunk,
)
from osler.data.shift.neighbours import NeighbourKL
from osler.data.shift.null import Null


def brute_mmd_squared(x: np.ndarray, y: np.ndarray, h: float) -> float:
    def k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * h * h))

    n, m = len(x), len(y)
    xx, yy = k(x, x), k(y, y)
    np.fill_diagonal(xx, 0)
    np.fill_diagonal(yy, 0)
    return xx.sum() / (n * (n - 1)) + yy.sum() / (m * (m - 1)) - 2 * k(x, y).mean()


def true_kl(mean: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    inverse = np.linalg.inv(b)
    logs = np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1]
    return 0.5 * (np.trace(inverse @ a) - len(a) + mean @ inverse @ mean + logs)


@pytest.mark.parametrize("d", [1, 3, 40])
def test_mmd_equals_brute_force_in_blocks_and_by_labels(d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(d)
    x, y = rng.standard_normal((70, d)) + 0.3, rng.standard_normal((50, d))
    expected = brute_mmd_squared(x, y, 1.7)
    small = [a.astype(np.float32) for a in (x, y)]
    monkeypatch.setattr(kernel, "_BLOCK", 16)
    assert kernel.mmd_squared(*small, 1.7) == pytest.approx(expected, abs=1e-6)
    marks = np.arange(120) < 70
    table = kernel.GramMMD(np.concatenate(small), 1.7)
    assert table.values(marks[None])[0] == pytest.approx(expected, abs=1e-6)


def test_mmd_is_unbiased_on_identical_data() -> None:
    rng = np.random.default_rng(0)
    values = [kernel.mmd_squared(*rng.standard_normal((2, 100, 5)).astype(np.float32), 3.0) for _ in range(300)]
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(300)


def test_random_features_approach_the_kernel_and_add_up() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 2000, 16)).astype(np.float32)
    y += 0.2
    h = kernel.median_bandwidth(x)
    exact = kernel.mmd_squared(x, y, h)
    random = fourier.FourierFeatures(16, 2048, h)
    left, right = random.sum(x), random.sum(y)
    assert fourier.mmd_squared(left, right) == pytest.approx(exact, rel=0.1)
    parts = random.sum(x[:300]).plus(random.sum(x[300:]))
    assert parts.size == left.size
    np.testing.assert_allclose(parts.total, left.total, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(left.minus(random.sum(x[:300])).total, random.sum(x[300:]).total, atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(random.of(x[:10]), axis=1), 1, atol=1e-5)
    again = fourier.FourierFeatures(16, 2048, h)
    np.testing.assert_array_equal(again.frequencies, random.frequencies)


def test_median_bandwidth_of_equal_and_nearly_equal_rows() -> None:
    assert kernel.median_bandwidth(np.zeros((10, 3), np.float32)) == 1.0
    rows = np.zeros((100, 2), np.float32)
    rows[0] = 5
    assert kernel.median_bandwidth(rows) > 0
    assert kernel.median_bandwidth(np.ones((1, 2), np.float32)) == 1.0


def test_shrinkage_intensities_are_scikit_learns() -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    rng = np.random.default_rng(0)
    for n, d in ((300, 40), (20, 60), (500, 2)):
        rows = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
        assert ledoit_wolf(rows) == pytest.approx(covariance.ledoit_wolf(rows)[1], rel=1e-9)
        centred = rows - rows.mean(0)
        assert oas(centred.T @ centred / n, n) == pytest.approx(covariance.oas(rows)[1], rel=1e-9)


def test_ledoit_wolf_for_a_smaller_sample_is_what_such_samples_give() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((20_000, 30)) @ rng.standard_normal((30, 30))
    own = np.mean([ledoit_wolf(part) for part in np.split(rows, 100)])
    assert ledoit_wolf(rows, 200) == pytest.approx(own, rel=0.05)


@pytest.mark.parametrize("method", ["ledoit-wolf", "oas"])
def test_gaussian_kl_meets_the_closed_form(method: str) -> None:
    rng = np.random.default_rng(4)
    d = 6
    a, b = (np.eye(d) + 0.4 * rng.standard_normal((d, d)) for _ in range(2))
    mean = 0.3 * rng.standard_normal(d)
    current = rng.standard_normal((200_000, d)) @ a + mean
    reference = rng.standard_normal((200_000, d)) @ b
    expected = true_kl(mean, a.T @ a, b.T @ b)
    weight = intensity(reference, 200_000, method)
    whitener = Whitener(Moments.of(reference), weight)
    value = whitener.kl(Moments.of(current))
    assert value == pytest.approx(expected, rel=0.03)
    assert gaussian_kl(Moments.of(current), Moments.of(reference), weight) == pytest.approx(value, rel=1e-9)
    parts = directions(whitener, Moments.of(current), most=d + 1)
    assert sum(p.kl for p in parts) == pytest.approx(value, rel=1e-9)
    assert [p.kl for p in parts] == sorted((p.kl for p in parts), reverse=True)


def test_gaussian_kl_merges_and_slides() -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((500, 4))
    whole = Moments.of(rows)
    merged = Moments.of(rows[:200]).plus(Moments.of(rows[200:]))
    np.testing.assert_allclose(merged.covariance, whole.covariance, atol=1e-12)
    np.testing.assert_allclose(whole.minus(Moments.of(rows[:200])).mean, rows[200:].mean(0), atol=1e-12)
    np.testing.assert_allclose(whole.covariance, np.cov(rows.T, bias=True), atol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(10, 50), (60, 1), (200, 30)])
def test_gaussian_kl_of_singular_covariances_is_finite(n: int, d: int) -> None:
    rng = np.random.default_rng(6)
    rows = rng.standard_normal((2, n, d))
    if d == 30:
        rows[:, :, 1] = rows[:, :, 0]  # the same column twice
    reference, current = rows
    whitener = Whitener(Moments.of(reference), intensity(reference, n, "ledoit-wolf"))
    assert math.isfinite(whitener.kl(Moments.of(current)))
    assert whitener.kl(Moments.of(reference)) == pytest.approx(0, abs=1e-6)


def test_the_same_column_twice_adds_next_to_nothing_on_identical_data() -> None:
    rng = np.random.default_rng(7)
    one = rng.standard_normal((2000, 5))
    two = rng.standard_normal((2000, 5))

    def kl(a: np.ndarray, b: np.ndarray) -> float:
        return Whitener(Moments.of(b), intensity(b, 2000, "ledoit-wolf")).kl(Moments.of(a))

    double = [np.concatenate([a, a[:, :1]], axis=1) for a in (one, two)]
    assert kl(*double) == pytest.approx(kl(one, two), abs=0.01)


def test_shrinking_keeps_the_trace() -> None:
    covariance = np.diag([4.0, 1.0, 0.0])
    out = shrunk(covariance, 0.2)
    assert np.trace(out) == pytest.approx(5)
    assert np.linalg.eigvalsh(out).min() > 0
    assert np.linalg.eigvalsh(shrunk(np.zeros((3, 3)), 0.1)).min() > 0


def test_marginal_kl() -> None:
    np.testing.assert_allclose(marginal_kl(np.array([0.0, 1.0]), np.array([1.0, 1.0])), [0, 0.5])
    assert marginal_kl(np.array([0.0]), np.array([0.0]))[0] > 10


@pytest.mark.parametrize("d", [1, 4])
def test_nearest_neighbour_kl_comes_near_the_closed_form(d: int) -> None:
    rng = np.random.default_rng(8)
    current = rng.standard_normal((3000, d))
    current[:, 0] += 1
    pooled = np.concatenate([current, rng.standard_normal((3000, d))]).astype(np.float32)
    value = NeighbourKL(pooled, 5, 3000).value(np.arange(6000) < 3000)
    assert value == pytest.approx(0.5, abs=0.12)


def test_nearest_neighbour_kl_equals_brute_force() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.standard_normal((2, 60, 3))
    y = y[:40]
    k = 3
    own = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.fill_diagonal(own, np.inf)
    rho = np.sort(own, axis=1)[:, k - 1]
    nu = np.sort(np.linalg.norm(x[:, None] - y[None], axis=-1), axis=1)[:, k - 1]
    expected = 3 * np.mean(np.log(nu / rho)) + math.log(40 / 59)
    pooled = np.concatenate([x, y]).astype(np.float32)
    assert NeighbourKL(pooled, k, 40).value(np.arange(100) < 60) == pytest.approx(expected, abs=1e-3)


def test_nearest_neighbour_kl_survives_equal_rows() -> None:
    rng = np.random.default_rng(10)
    x = rng.integers(0, 3, size=(400, 2)).astype(np.float32)
    value = NeighbourKL(x, 5, 200).value(np.arange(400) < 200)
    assert math.isfinite(value)
    assert math.isfinite(NeighbourKL(np.zeros((100, 2), np.float32), 5, 50).value(np.arange(100) < 50))


def test_null_quantiles_and_p_values() -> None:
    rng = np.random.default_rng(11)
    null = Null(rng.standard_normal(999))
    assert null.p(math.inf) == 1 / 1000
    assert null.p(-math.inf) == 1
    assert null.quantile(0.05) == pytest.approx(1.645, abs=0.25)
    assert null.quantile(1e-4) >= null.draws[-1]
    gamma = Null(rng.gamma(2.0, size=5000))
    assert gamma.quantile(1e-3) == pytest.approx(9.23, rel=0.15)
    assert Null(np.zeros(10)).quantile(0.001) == 0
    with pytest.raises(ValueError, match="finite"):
        Null(np.array([0.0, np.nan]))
