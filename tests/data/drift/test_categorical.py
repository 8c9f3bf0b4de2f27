"""Categories are counted exactly up to the cap and within a stated error beyond it, and merge."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from osler.data.drift.categorical import Categories, aligned, ranked
from osler.data.need import DataError


def test_counts_nulls_and_ranks() -> None:
    state = Categories().update(pa.array(["b", "a", None, "b", ""]))
    assert (state.n, state.nulls, state.rows, state.other, state.error) == (4, 1, 5, 0, 0)
    assert sorted(state.counts.values()) == [1, 1, 2]
    assert state.counts[ranked(state.counts)[0]] == 2
    assert state.names == {}


def test_dictionaries_and_plain_text_are_the_same_categories() -> None:
    texts = ["x", "y", "x", None]
    plain = Categories().update(pa.array(texts))
    for values in (
        pa.array(texts).dictionary_encode(),
        pa.array(texts, pa.large_string()),
        pa.chunked_array([texts[:1], texts[1:]]),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2]), pa.array(["x", "y", None])),
    ):
        state = Categories().update(values)
        assert (state.counts, state.n, state.nulls) == (plain.counts, 3, 1)


def test_float_noise_in_codes_makes_no_new_category() -> None:
    whole = Categories().update(pa.array([1, 2, 2]))
    noisy = Categories().update(pa.array([1.0000000001, 2.0, 1.9999999]))
    assert noisy.counts == whole.counts
    assert Categories().update(pa.array([True, False])).counts == Categories().update(pa.array([1, 0])).counts


def test_nan_is_no_category() -> None:
    state = Categories().update(pa.array([1.0, float("nan"), None, float("inf"), -0.0, 0.0]))
    assert (state.n, state.nulls, len(state.counts)) == (4, 2, 3)


def test_dates_and_odd_text() -> None:
    Categories().update(pa.array([datetime.date(2024, 1, 1), None]))
    assert len(Categories().update(pa.array(["é", "e\u0301", "\x00", "a" * 100_000])).counts) == 4


@pytest.mark.parametrize("seed", range(5))
def test_beyond_the_cap_every_count_is_right_within_the_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [f"v{v}" for v in np.minimum(rng.zipf(1.3, 6000), 3000)]
    exact = Categories(cap=100_000, named=True).update(pa.array(values))
    states = [Categories(cap=50).update(pa.array(part.tolist())) for part in np.array_split(np.array(values), 7)]
    merged = states[0].copy()
    for state in states[1:]:
        merged += state
    assert merged.n == 6000
    assert len(merged.counts) <= 50
    assert 0 < merged.error <= 6000 / 51
    for key, count in exact.counts.items():
        assert count - merged.error <= merged.counts.get(key, 0) <= count
    assert merged.other == 6000 - sum(merged.counts.values())


def test_merging_within_the_cap_is_exact() -> None:
    one, two = Categories().update(pa.array(["a", "b"])), Categories().update(pa.array(["b", None]))
    one += two
    assert one.counts == Categories().update(pa.array(["a", "b", "b"])).counts
    assert (one.n, one.nulls) == (3, 1)


def test_names_only_where_asked_for() -> None:
    state = Categories(named=True).update(pa.array(["ann", "bob"]))
    assert sorted(state.names.values()) == ["ann", "bob"]
    assert Categories().update(pa.array(["ann"])).names == {}


def test_aligned_goes_by_rank_in_the_first() -> None:
    one = Categories().update(pa.array(["a", "b", "b"]))
    two = Categories().update(pa.array(["c", "a"]))
    _, (p, q) = aligned((one, two))
    assert p.tolist() == [2, 1, 0]
    assert q.tolist() == [0, 1, 1]


@pytest.mark.parametrize("parts", [({1: -1}, 0, 0), ({1: 5}, 4, 0), ({1: 3}, 4, 0), ({}, 0, -1)])
def test_a_state_that_contradicts_itself_is_refused(parts: tuple[dict[int, int], int, int]) -> None:
    with pytest.raises(DataError, match="contradict"):
        Categories.of(*parts)
