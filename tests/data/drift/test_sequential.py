"""The sequential test: its bound over many sequences, its delay, and its parts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from osler.data.drift.sequential import Binning, SequentialTest, log_gamma, split


def alarms(kind: str, sequences: int, alpha: float, reference: int = 400, rows: int = 1500) -> float:
    """The share of null sequences in which the e-value ever reached 1/alpha, looked at every 50 rows."""
    hits = 0
    for i in range(sequences):
        rng = np.random.default_rng(1000 + i)

        def draw(n: int, rng: np.random.Generator = rng) -> np.ndarray:
            if kind == "normal":
                return rng.standard_normal(n)
            if kind == "cauchy":
                return rng.standard_cauchy(n)
            if kind == "two values":
                return rng.integers(0, 2, n).astype(float)
            out = rng.poisson(2.0, n).astype(float)
            out[rng.random(n) < 0.1] = np.nan
            return out

        binning, urn = split(draw(reference), seed=i)
        test = SequentialTest(urn, restart=200, seed=i)
        for part in np.split(binning.symbols(draw(rows)), rows // 50):
            test.update(part)
        hits += test.crossed(alpha)
    return hits / sequences


@pytest.mark.parametrize("kind", ["normal", "cauchy", "two values", "counts with gaps"])
def test_false_alarms_stay_below_the_bound(kind: str) -> None:
    # at alpha = 0.5 the bound is tightest to test: 150 sequences, three standard errors above it would fail
    assert alarms(kind, 60, 0.5) <= 0.5 + 3 * math.sqrt(0.25 / 60)
    assert alarms(kind, 60, 0.1) <= 0.1 + 3 * math.sqrt(0.09 / 60)


def test_conformal_p_values_are_uniform_also_on_ties() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros(10)
    for i in range(200):
        binning, urn = split(rng.integers(0, 3, 60).astype(float), seed=i)
        test = SequentialTest(urn, seed=i)
        counts += np.bincount(test._cells(binning.symbols(rng.integers(0, 3, 50).astype(float))), minlength=10)
    chi = ((counts - 1000) ** 2 / 1000).sum()
    assert chi < 27.9  # 99.9 % of chi² with 9 degrees of freedom


def test_the_expected_wealth_on_unchanged_data_is_one() -> None:
    values = []
    for i in range(2000):
        rng = np.random.default_rng(i)
        binning, urn = split(rng.standard_normal(60), seed=i, bins=8)
        values.append(math.exp(SequentialTest(urn, seed=i).update(binning.symbols(rng.standard_normal(20)))))
    assert np.mean(values) == pytest.approx(1, abs=4 * np.std(values) / math.sqrt(len(values)))


@pytest.mark.parametrize("before", [0, 5000])
@pytest.mark.parametrize(("moved", "most"), [(1.0, 200), (0.5, 500)])
def test_the_delay_after_a_moved_mean(before: int, moved: float, most: int) -> None:
    delays = []
    for i in range(8):
        rng = np.random.default_rng(i)
        binning, urn = split(rng.standard_normal(10_000), seed=i)
        test = SequentialTest(urn, seed=i)
        test.update(binning.symbols(rng.standard_normal(before)))
        rows = 0
        while not test.crossed(0.001) and rows < 5000:
            test.update(binning.symbols(rng.standard_normal(25) + moved))
            rows += 25
        delays.append(rows)
    assert np.median(delays) <= most


@pytest.mark.parametrize("change", ["wider", "narrower", "missing", "infinite"])
def test_other_changes_are_seen_too(change: str) -> None:
    rng = np.random.default_rng(0)
    binning, urn = split(rng.standard_normal(10_000))
    values = rng.standard_normal(3000)
    if change in ("wider", "narrower"):
        values *= 1.5 if change == "wider" else 0.6
    else:
        values[rng.random(3000) < 0.1] = np.nan if change == "missing" else np.inf
    test = SequentialTest(urn)
    test.update(binning.symbols(values))
    assert test.crossed(0.001)


def test_the_state_continues_exactly() -> None:
    rng = np.random.default_rng(0)
    binning, urn = split(rng.standard_normal(2000))
    symbols = binning.symbols(rng.standard_normal(30_000))
    test = SequentialTest(urn, restart=100)
    test.update(symbols[:25_000])
    again = SequentialTest.of(json.loads(json.dumps(test.state())))
    assert test.update(symbols[25_000:]) == again.update(symbols[25_000:])
    assert test.state() == again.state()


def test_binning_of_odd_columns() -> None:
    assert Binning.of(np.array([])).symbols(np.array([1.0, np.nan])).tolist() == [0, 3]
    constant = Binning.of(np.full(100, 7.0))
    assert constant.symbols(np.array([6.0, 7.0, 8.0])).tolist() == [0, 0, 1]
    odd = Binning.of(np.array([np.nan, np.inf, -np.inf, 1.0, 2.0]))
    codes = odd.symbols(np.array([-np.inf, np.inf, np.nan]))
    assert codes.tolist() == [odd.size - 3, odd.size - 2, odd.size - 1]
    with pytest.raises(ValueError, match="counts"):
        SequentialTest(np.array([-1, 2]))


def test_log_gamma() -> None:
    x = np.array([0.5, 1.0, 1.5, 10.0, 12345.6, 1e7])
    np.testing.assert_allclose(log_gamma(x), [math.lgamma(v) for v in x], rtol=1e-11, atol=1e-11)
