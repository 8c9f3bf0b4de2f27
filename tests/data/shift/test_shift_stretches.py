"""Rows that hang together in time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from osler.core.settings import Settings
from osler.data.shift import check_shift
from osler.data.shift.rows import Reservoir
from osler.data.shift.stretches import correlation_time, deal, stretch

FAST = dataclasses.replace(
    Settings(), shift=dataclasses.replace(Settings().shift, permutations=100, max_exact=600, random_features=256)
)


def chain(seed: int, rows: int, features: int, rho: float) -> np.ndarray:
    """A first-order autoregressive process of variance 1."""
    noise = np.random.default_rng(seed).standard_normal((rows, features))
    out = noise.copy()
    for t in range(1, rows):
        out[t] = rho * out[t - 1] + np.sqrt(1 - rho * rho) * noise[t]
    return out


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_correlation_time_of_a_known_process(rho: float) -> None:
    expected = (1 + rho) / (1 - rho)
    assert correlation_time(chain(0, 20_000, 2, rho)) == pytest.approx(expected, rel=0.3)
    assert stretch(expected) >= 10 * expected


def test_independent_rows_are_dealt_one_by_one() -> None:
    rng = np.random.default_rng(0)
    for rows, features in ((2000, 1), (5000, 60)):
        assert stretch(correlation_time(rng.standard_normal((rows, features)))) == 1
    assert correlation_time(np.ones((500, 2))) == 1
    assert correlation_time(np.zeros((3, 2))) == 1


def test_a_process_whose_spread_comes_in_bursts_is_noticed() -> None:
    level = np.exp(chain(0, 20_000, 1, 0.98))
    assert correlation_time(level * np.random.default_rng(1).standard_normal((20_000, 1))) > 5


def test_dealing_keeps_neighbours_together() -> None:
    rng = np.random.default_rng(0)
    at = deal(rng, 1000, 300, 50)
    assert len(set(at.tolist())) == 300
    assert np.mean(np.diff(at) == 1) > 0.95
    assert sorted(deal(rng, 10, 10, 4).tolist()) == list(range(10))
    counts = np.zeros(100)
    for _ in range(2000):
        counts[deal(rng, 100, 30, 7)] += 1
    assert counts.min() > 450
    assert counts.max() < 750


def test_a_reservoir_draws_stretches_uniformly() -> None:
    counts = np.zeros(3000)
    for seed in range(200):
        reservoir = Reservoir(500, 1, seed, length=20)
        for part in np.array_split(np.arange(3000.0), 13):
            reservoir.add(part[:, None])
        assert len(reservoir.rows) == 500
        np.testing.assert_array_equal(reservoir.rows[:, 0], reservoir.positions)
        assert np.mean(np.diff(reservoir.positions) == 1) > 0.9
        counts[reservoir.positions] += 1
    assert abs(counts[:1500].mean() - counts[1500:].mean()) < 5
    few = Reservoir(500, 2, 0, length=20)
    few.add(np.zeros((7, 2)))
    assert few.rows.shape == (7, 2)


def test_a_sensor_is_no_shift_and_a_broken_one_is() -> None:
    for seed in range(4):
        rows = chain(seed, 13_000, 4, 0.9)
        report = check_shift(rows[:10_000], rows[10_000:], settings=FAST)
        assert not report.findings
    assert any("alike over about" in note for note in report.notes)
    assert any(n.what == "nearest-neighbour KL" for n in report.not_checked)
    rows[10_000:, 0] += 2
    (found,) = check_shift(rows[:10_000], rows[10_000:], settings=FAST).findings
    assert found.touches == {"column:0"}
