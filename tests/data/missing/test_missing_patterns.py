"""Holes: blocks, a rise since training, and holes that go with the label; and the one pass over a table."""

import numpy as np
import pyarrow as pa
import pytest

from osler.core.progress import quiet
from osler.data.missing.patterns import block_probability, rise_probability, tie_to_label
from osler.data.missing.scan import Holes, scan
from osler.data.need import DataError
from osler.data.tables import open_source


def test_the_longest_run_is_found_across_batches():
    rng = np.random.default_rng(0)
    for _ in range(300):
        missing = rng.random(rng.integers(1, 40)) < rng.choice([0.2, 0.8, 1.0])
        cuts = np.sort(rng.integers(0, len(missing) + 1, 3))
        holes = Holes()
        for part in np.split(missing, cuts):
            holes.add(part)
        text = "".join("x" if m else "." for m in missing)
        runs = [len(run) for run in text.split(".")]
        assert (holes.count, holes.longest) == (missing.sum(), max(runs))
        assert holes.start == text.find("x" * max(runs)) if max(runs) else holes.start == -1


def test_a_block_is_no_chance_and_scattered_holes_are():
    rng = np.random.default_rng(0)
    longest = []
    for _ in range(200):
        holes = Holes()
        holes.add(rng.random(2000) < 0.3)
        longest.append(block_probability(2000, holes.count, holes.longest))
    assert min(longest) > 1e-3
    assert block_probability(2000, 300, 300) < 1e-100
    assert block_probability(100, 100, 100) == 1.0


def test_a_rise_is_told_from_the_same_share():
    rng = np.random.default_rng(0)
    same = [rise_probability(rng.binomial(1000, 0.1), 1000, rng.binomial(3000, 0.1), 3000) for _ in range(2000)]
    assert np.mean(np.array(same) < 0.05) < 0.06
    assert rise_probability(150, 1000, 300, 3000) < 1e-5
    assert rise_probability(0, 10, 0, 10) == rise_probability(10, 10, 10, 10) == 1.0


@pytest.mark.parametrize("numbers", [False, True])
def test_holes_that_go_with_the_label(numbers):
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000) if numbers else rng.integers(0, 3, 2000)
    tied = rng.random(2000) < np.where(y > 0, 0.4, 0.1)
    free = rng.random(2000) < 0.2
    assert tie_to_label(tied, y, 20).strength > 0.25
    assert tie_to_label(tied, y, 20).p < 1e-10
    assert tie_to_label(free, y, 20).strength < 0.08
    assert tie_to_label(np.arange(2000) < 5, y, 20) is None


def test_one_pass_counts_every_row_and_samples_evenly():
    n = 10_000
    x = np.where(np.arange(n) % 4 == 0, np.nan, np.arange(n, dtype=float))
    table = pa.table({"x": x, "k": pa.array([None if i % 10 == 0 else "a" for i in range(n)])})
    found = scan(open_source(table), ["x", "k"], 1000, quiet)
    assert (found.rows, found.holes["x"].count, found.holes["k"].count) == (n, n // 4, n // 10)
    assert len(found.positions) == 1000
    assert np.all(np.diff(found.positions) > 0)
    assert abs(found.positions.mean() - n / 2) < 300
    seen = found.raw("x").values
    assert np.array_equal(seen[~np.isnan(seen)], found.positions[~np.isnan(seen)])


def test_a_table_without_rows_is_one_line():
    with pytest.raises(DataError, match="has no rows"):
        scan(open_source(pa.table({"x": pa.array([], pa.float64())})), ["x"], 100, quiet)
