"""The grid counts what numpy counts, compiled or not, for any floats over any edges, and merges."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osler.data.drift import kernels
from osler.data.drift.grid import SCHEMA, Edges, Grid
from osler.data.need import DataError

FLOATS = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def states(edges: Edges, values: np.ndarray) -> tuple[Grid, Grid]:
    """The same values by the compiled kernel and by numpy alone."""
    compiled, plain = Grid(edges), Grid(edges)
    kernel = kernels._compiled()
    assert kernel is not None
    index = edges.index
    kernel(values, index.padded, *index[:5], index.first, compiled._state, compiled._special)
    kernels.accumulate_plain(values, edges.values, plain._state, plain._special)
    return compiled, plain


@settings(max_examples=200, deadline=None)
@given(st.lists(FINITE, min_size=1, max_size=60), st.lists(FLOATS, max_size=80))
def test_kernels_agree_bit_for_bit_and_count_as_searchsorted(edge_list: list[float], value_list: list[float]) -> None:
    edges = Edges(np.unique(np.array(edge_list) + 0.0))
    with np.errstate(over="ignore"):
        beside = [np.nextafter(edges.values, np.inf), np.nextafter(edges.values, -np.inf), edges.values]
    values = np.concatenate([np.array(value_list, np.float64), *beside])
    compiled, plain = states(edges, values)
    assert np.array_equal(compiled._state, plain._state)
    assert np.array_equal(compiled._special, plain._special)
    finite = values[np.isfinite(values)]
    expected = np.bincount(np.searchsorted(edges.values, finite), minlength=len(edges) + 1)
    assert np.array_equal(compiled.counts, expected)
    assert compiled.rows == values.size


@pytest.mark.parametrize("seed", range(12))
def test_bits_at_random_over_edges_of_every_spread(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [
        lambda n: np.frombuffer(rng.bytes(8 * n), np.float64),
        lambda n: rng.normal(size=n) * 10.0 ** rng.integers(-320, 305),
        lambda n: rng.lognormal(0, 6, n),
        lambda n: np.where(rng.random(n) < 0.01, 1e300, rng.normal(size=n)),
    ]
    with np.errstate(all="ignore"):
        values = np.concatenate([draw(400) for draw in draws])
        edges = draws[seed % 4](3000)
    edges = Edges(np.unique(edges[np.isfinite(edges)] + 0.0))
    compiled, plain = states(edges, values)
    assert np.array_equal(compiled._state, plain._state)
    assert np.array_equal(compiled._special, plain._special)


def test_infinities_nan_and_nulls_never_reach_a_bin() -> None:
    grid = Grid([0.0]).update([np.nan, np.nan, np.inf, -np.inf, -np.inf, 1.0, -0.0], nulls=1)
    assert (grid.n, grid.nulls, grid.nans, grid.pos_inf, grid.neg_inf, grid.rows) == (2, 1, 1, 1, 2, 7)
    assert grid.counts.tolist() == [1, 1]
    assert grid.missing == 2
    assert (grid.low, grid.high) == (0.0, 1.0)


def test_sums_are_distances_to_the_anchor() -> None:
    grid = Grid([1.0, 2.0]).update([0.5, 1.0, 1.5, 2.0, 5.0])
    assert grid.gaps.tolist() == [0.5, 0.5, 3.0]
    assert grid.lows.tolist() == [0.5, 1.5, 5.0]
    assert grid.highs.tolist() == [1.0, 2.0, 5.0]


def test_nothing_seen() -> None:
    grid = Grid([3.0])
    assert grid.n == grid.rows == 0
    assert grid.low == np.inf
    assert Grid.from_arrow(grid.to_arrow()).rows == 0


def test_any_real_dtype() -> None:
    for dtype in (np.float32, np.int8, np.uint64, np.bool_):
        assert Grid([0.5]).update(np.array([0, 1, 1], dtype)).counts.tolist() == [1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(FLOATS, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_merging_parts_is_counting_the_whole(values: list[float], one: int, two: int) -> None:
    edges = Edges([-1.0, 0.0, 1.0])
    array = np.array(values, np.float64)
    cut, end = sorted((one, two))
    merged = Grid.merged(Grid(edges).update(part) for part in (array[:cut], array[cut:end], array[end:]))
    whole = Grid(edges).update(array)
    assert np.array_equal(merged.counts, whole.counts)
    assert np.array_equal(merged.lows, whole.lows)
    assert np.array_equal(merged.highs, whole.highs)
    assert (merged.nans, merged.neg_inf, merged.pos_inf) == (whole.nans, whole.neg_inf, whole.pos_inf)
    assert np.allclose(merged.gaps, whole.gaps, rtol=1e-12, equal_nan=True)


def test_merging_over_other_edges_is_refused() -> None:
    with pytest.raises(DataError, match="same edges"):
        Grid([0.0]) + Grid([1.0])


def test_a_sum_leaves_its_parts_alone() -> None:
    one, two = Grid([0.0]).update([1.0]), Grid([0.0]).update([2.0])
    assert (one + two).n == 2
    assert one.n == two.n == 1


@pytest.mark.parametrize("edges", [[], [np.nan], [np.inf], [1.0, 1.0], [2.0, 1.0], [[1.0]]])
def test_edges_must_be_finite_and_ascend(edges: list[float]) -> None:
    with pytest.raises(DataError, match="edge"):
        Grid(edges)


def test_arrow_there_and_back_in_a_table_of_many() -> None:
    rng = np.random.default_rng(0)
    grids = [Grid(np.arange(5.0) + i).update(rng.normal(i, 3, 100), nulls=0) for i in range(4)]
    table = pa.Table.from_batches([g.to_arrow() for g in grids])
    assert table.schema == SCHEMA
    for i, grid in enumerate(grids):
        back = Grid.from_arrow(table, i, edges=grid.edge_set)
        assert back.edge_set is grid.edge_set
        assert np.array_equal(back._state, grid._state)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("counts", [[-1, 0]]),
        ("counts", [[1]]),
        ("gaps", [[-1.0, 0.0]]),
        ("edges", [[float("nan")]]),
        ("edges", [[]]),
        ("lows", [[5.0, 5.0]]),
        ("nulls", [-3]),
        ("counts", [None]),
        ("gaps", [[float("nan"), 0.0]]),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(name: str, value: list[object]) -> None:
    table = pa.Table.from_batches([Grid([0.0]).update([-1.0, 1.0]).to_arrow()])
    at = SCHEMA.get_field_index(name)
    broken = table.set_column(at, SCHEMA.field(name), pa.array(value, SCHEMA.field(name).type))
    with pytest.raises(DataError, match="grid"):
        Grid.from_arrow(broken)
    with pytest.raises(DataError, match="grid"):
        Grid.from_arrow(table.drop_columns([name]))


def test_coarser_is_counting_over_fewer_edges() -> None:
    rng = np.random.default_rng(1)
    fine = Edges(np.unique(rng.normal(size=500)))
    values = rng.normal(size=3000)
    few = fine.thinned(20)
    assert 20 <= len(few) <= 31
    assert few.values[0] == fine.values[0]
    assert few.values[-1] == fine.values[-1]
    made, counted = Grid(fine).update(values).coarser(few), Grid(few).update(values)
    assert np.array_equal(made.counts, counted.counts)
    assert np.array_equal(made.lows, counted.lows)
    assert np.array_equal(made.highs, counted.highs)
    assert np.allclose(made.gaps, counted.gaps, rtol=1e-12)
    with pytest.raises(DataError, match="coarser"):
        made.coarser(Edges([0.123]))


def test_numpy_alone_where_numba_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_compiled", lambda: None)
    assert Grid([0.0]).update(np.array([-1.0, 1.0, np.nan])).counts.tolist() == [1, 1]
