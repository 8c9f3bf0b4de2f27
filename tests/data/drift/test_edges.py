"""Edges follow the reference: quantiles, tails, repeated values; whatever the order and the size of batches."""

from __future__ import annotations

import numpy as np
import pytest

from osler.data.drift.edges import Sampler, make_edges
from osler.data.drift.grid import Grid


def test_bins_hold_like_shares_of_the_reference() -> None:
    values = np.random.default_rng(0).normal(size=400_000)
    edges = make_edges(values, 256)
    assert 200 <= len(edges) <= 256
    counts = Grid(edges).update(values).counts
    assert counts.max() < 3 * values.size / 200
    assert edges.values[0] == values.min()
    assert edges.values[-1] == values.max()


def test_tails_of_the_reference_lie_in_bins_of_few_values() -> None:
    values = np.random.default_rng(0).standard_cauchy(300_000)
    counts = Grid(make_edges(values)).update(values).counts
    assert counts[-32:].max() == 1
    assert counts[:32].max() == 1
    assert counts.max() < 1000


def test_few_distinct_values_have_a_bin_each() -> None:
    values = np.array([3.0, 1.0, 2.0, 2.0, -0.0, 0.0])
    counts = Grid(make_edges(values, 64)).update(values).counts
    assert sorted(counts[counts > 0].tolist()) == [1, 1, 2, 2]


def test_a_frequent_value_has_a_bin_of_its_own() -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(50_000) < 0.4, 0.0, rng.normal(size=50_000))
    grid = Grid(make_edges(values, 256)).update(values)
    zero = int(np.argmax(grid.counts))
    assert grid.counts[zero] == (values == 0).sum()
    assert grid.lows[zero] == grid.highs[zero] == 0


@pytest.mark.parametrize("values", [[], [np.nan, np.inf, -np.inf]])
def test_no_finite_value_gives_one_edge(values: list[float]) -> None:
    assert make_edges(np.array(values)).values.tolist() == [0.0]


def test_constant_and_single() -> None:
    for values in (np.full(1000, 7.0), np.array([7.0])):
        assert 7.0 in make_edges(values).values


def test_extremes_of_the_floats() -> None:
    values = np.array([-1.7976931348623157e308, 1.7976931348623157e308, 5e-324, 0.0])
    assert Grid(make_edges(values)).update(values).n == 4


def test_a_stream_is_sampled_over_its_whole_length() -> None:
    """A sorted file: the sample must not come from its beginning alone."""
    values = np.arange(1_500_000, dtype=np.float64)
    sampler = Sampler(256)
    for part in np.array_split(values, 40):
        sampler.add(part)
    edges = sampler.edges().values
    assert edges[0] == 0
    assert edges[-1] == 1_499_999
    middle = np.interp(0.5, np.linspace(0, 1, edges.size), edges)
    assert 600_000 < middle < 900_000


def test_the_same_rows_give_the_same_edges() -> None:
    values = np.random.default_rng(0).normal(size=200_000)
    assert make_edges(values).same(make_edges(values.copy()))


def test_too_few_edges_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 8"):
        Sampler(4)
