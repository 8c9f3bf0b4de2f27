"""Row hashes mean the same wherever the rows come from; compiled and plain loops agree."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osler.core.settings import Settings
from osler.data.splits import compiled
from osler.data.splits.hashes import add_column, bytes_of, codes_of, mix, polynomial, row_hashes, same, seed_of
from osler.data.splits.index import KeyIndex
from osler.data.splits.near import Band, cell_keys, distances, project
from osler.data.splits.text import normalise, signatures

NAN = float("nan")
needs_numba = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


def one(values: object, type_: pa.DataType | None = None) -> np.ndarray:
    return row_hashes(pa.table({"x": pa.array(values, type_)}))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pa.array([1, 2, 0]), pa.array([1.0, 2.0, -0.0])),
        (pa.array([1, 0]), pa.array([True, False])),
        (pa.array([1, 2], pa.int8()), pa.array([1, 2], pa.uint64())),
        (pa.array([2**63], pa.uint64()), pa.array([2.0**63])),
        (pa.array([0.5, NAN], pa.float32()), pa.array([0.5, NAN], pa.float64())),
        (pa.array([decimal.Decimal("1.5")]), pa.array([1.5])),
        (pa.array([decimal.Decimal("7")]), pa.array([7])),
        (pa.array(["a", None, ""]), pa.array(["a", None, ""]).dictionary_encode()),
        (pa.array(["é", "zz"]), pa.array(["é", "zz"], pa.large_string())),
        (
            pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("s")),
            pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("ns", "UTC")),
        ),
        (pa.array([datetime.date(2024, 1, 2)]), pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("us"))),
        (pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)), pa.array([[1, 2], [3, 4]])),
        (pa.array([1.0, 2.0]), pa.chunked_array([[1.0], [2.0]])),
    ],
)
def test_equal_values_have_equal_hashes(a: pa.Array, b: pa.Array) -> None:
    assert row_hashes(pa.table({"x": a})).tolist() == row_hashes(pa.table({"x": b})).tolist()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, NAN, None]),
        pa.array(["", None, "a", "aa", "a "]),
        pa.array([[1, 2], [2, 1], [1], [], None, [1, None]]),
        pa.array([{"a": 1, "b": 2}, {"a": 2, "b": 1}, None]),
        pa.array([2**53, 2**53 + 1]),
        pa.array([b"\x00", b"\x00\x00", b""]),
    ],
)
def test_different_values_have_different_hashes(values: pa.Array) -> None:
    assert len(set(row_hashes(pa.table({"x": values})).tolist())) == len(values)


def test_a_text_is_no_number_and_a_time_is_no_integer() -> None:
    stamp = pa.array([1], pa.timestamp("ns"))
    assert len({int(one(["1"])[0]), int(one([1])[0]), int(row_hashes(pa.table({"x": stamp}))[0])}) == 3


def test_nan_and_null_are_one_where_that_is_asked_for() -> None:
    rows = pa.table({"x": [NAN, None], "y": [1, 1]})
    apart, alike = row_hashes(rows), row_hashes(rows, missing_alike=True)
    assert apart[0] != apart[1]
    assert alike[0] == alike[1]


def test_the_order_of_columns_and_chunks_does_not_matter_and_their_names_do() -> None:
    a = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    b = pa.table({"y": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]})
    c = pa.concat_tables([a.slice(0, 1), a.slice(1)])
    assert row_hashes(a).tolist() == row_hashes(b).tolist() == row_hashes(c).tolist()
    assert row_hashes(a.rename_columns(["y", "x"])).tolist() != row_hashes(a).tolist()


def test_slices_hash_as_the_rows_they_hold() -> None:
    table = pa.table({"t": ["aa", "b", "cc", None], "l": [[1], [2, 3], [], [4]], "x": [1.0, None, 3.0, 4.0]})
    assert row_hashes(table)[1:3].tolist() == row_hashes(table.slice(1, 2)).tolist()
    batch = table.to_batches()[0].slice(1, 2)
    assert row_hashes(batch).tolist() == row_hashes(table)[1:3].tolist()


def test_hashes_are_the_same_in_every_process() -> None:
    code = (
        "import pyarrow as pa\nfrom osler.data.splits.hashes import row_hashes\n"
        "print(row_hashes(pa.table({'a': [1.5], 'b': ['x'], 'c': [None]}))[0])"
    )
    here = row_hashes(pa.table({"a": [1.5], "b": ["x"], "c": [None]}))[0]
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert int(there) == int(here) == 5459596212455058159


def test_a_term_can_be_taken_out_of_a_sum_again() -> None:
    table = pa.table({"x": [1.0, 2.0], "y": ["a", "b"]})
    total = np.zeros(2, np.uint64)
    for name in ("x", "y"):
        add_column(total, table.column(name), seed_of(name))
    term = np.zeros(2, np.uint64)
    add_column(term, table.column("y"), seed_of("y"))
    assert mix(total - term).tolist() == row_hashes(table, ["x"]).tolist()


def test_codes_are_one_to_one_for_numbers() -> None:
    values = np.array([0.0, 1.0, 0.5, -1.0, 2.0**63, 2.0**64, 1e300, np.inf, -np.inf, 5e-324, NAN])
    codes, classes = codes_of(pa.array(values, from_pandas=False))
    assert len(set(zip(codes.tolist(), classes.tolist()))) == values.size


def test_same_compares_values_and_not_hashes() -> None:
    a, b = pa.array(["a", None, "b", None]), pa.array(["a", None, "c", "d"])
    assert same(a, b).tolist() == [True, True, False, False]
    assert same(pa.array([1.0, NAN, None]), pa.array([1, 2, None])).tolist() == [True, False, True]
    assert same(pa.array([[1, 2], None]), pa.array([[1, 2], [3]])).tolist() == [True, False]


@needs_numba
@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_compiled_hashes_are_the_plain_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hard = np.array([NAN, 0.0, -0.0, np.inf, -np.inf, 2.0**62, 2.0**63, 2.0**64, -(2.0**63), 1e-320])
    numbers = np.concatenate([rng.normal(size=50), rng.integers(-5, 5, 20).astype(float), hard])
    words = pa.array(["".join(rng.choice(list("abé "), rng.integers(0, 12))) for _ in range(30)])
    arrays = [
        pa.array(numbers, from_pandas=False),
        pa.array(numbers.astype(np.float32), from_pandas=False),
        pa.array(rng.integers(-9, 9, 40)),
        pa.array([1, None, 3]),
        words,
        words.dictionary_encode(),
    ]
    for array in arrays:
        both = [np.zeros(len(array), np.uint64) for _ in range(2)]
        add_column(both[0], array, 7, fast=True)
        add_column(both[1], array, 7, fast=False)
        assert both[0].tolist() == both[1].tolist()
    data, offsets = bytes_of(words)
    base = 0xD6E8FEB86659FD93
    assert polynomial(data, offsets, base, True).tolist() == polynomial(data, offsets, base, False).tolist()


@needs_numba
def test_compiled_searches_are_the_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    keys = mix(rng.integers(0, 300, 2_000).astype(np.uint64))
    probe = mix(rng.integers(0, 500, 3_000).astype(np.uint64))
    fast, plain = KeyIndex(keys, 8, fast=True), KeyIndex(keys, 8, fast=False)
    for a, b in zip(fast.pairs(probe), plain.pairs(probe)):
        assert a.tolist() == b.tolist()
    assert fast.skipped == plain.skipped > 0

    x = rng.normal(size=(500, 4))
    x[::7, 1], x[3, 2] = NAN, 1e9
    table = pa.table({f"c{i}": pa.array(x[:, i], from_pandas=False) for i in range(4)})
    texts = normalise(pa.array(["The quick brown  fox " * int(k) for k in rng.integers(0, 9, 60)]))
    results = []
    for worth in (True, False):
        monkeypatch.setattr(compiled, "worth", lambda rows, worth=worth: worth)
        z = project(table, table.column_names, np.zeros(4), np.ones(4))
        band = Band(np.array([0, 2, 1]), rng.random(4) * 0 + 0.3)
        left, right = np.arange(400), np.arange(100, 500)
        keys_ = cell_keys(z, band, 0.25, np.arange(500, dtype=np.uint64))
        near = distances(z, left, z, right, 1.5)
        results.append((z, keys_, near, *signatures(texts, Settings().splits)))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-6)
