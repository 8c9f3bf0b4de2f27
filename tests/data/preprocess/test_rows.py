"""Rows are recognised in whatever array they come back."""

from __future__ import annotations

import numpy as np
import pytest

from osler.data.preprocess.arrays import columns, patterns
from osler.data.preprocess.book import Book

RNG = np.random.default_rng(0)


def book() -> Book:
    return Book(link_rows=1 << 18, memory=64 << 20)


def ids(of: Book, data: object) -> np.ndarray:
    record = of.look(data)
    assert record is not None
    return record.ids


def test_same_object_view_copy_and_selection_are_the_same_rows() -> None:
    b, X = book(), RNG.normal(size=(300, 5))
    root = ids(b, X)
    assert root.tolist() == list(range(300))
    assert ids(b, X) is root
    assert ids(b, X[40:90:2]).tolist() == list(range(40, 90, 2))
    assert ids(b, X[::-1][:10]).tolist() == list(range(299, 289, -1))
    assert ids(b, X.copy()).tolist() == root.tolist()
    order = RNG.permutation(300)[:80]
    assert ids(b, X[order]).tolist() == order.tolist()
    assert ids(b, np.asfortranarray(X)[20:60]).tolist() == list(range(20, 60))
    assert ids(b, X[:, 1:3].copy()).tolist() == root.tolist()
    assert ids(b, X[order][:, [4, 0]]).tolist() == order.tolist()
    assert ids(b, X.tolist()).tolist() == root.tolist()


def test_rows_put_together_and_rows_that_are_new() -> None:
    b = book()
    A, B = RNG.normal(size=(100, 4)), RNG.normal(size=(60, 4))
    first, second = ids(b, A), ids(b, B)
    assert not set(first) & set(second)
    both = ids(b, np.vstack([B, A]))
    assert both.tolist() == [*second, *first]
    new = ids(b, np.vstack([A[:50], RNG.normal(size=(30, 4))]))
    assert new[:50].tolist() == first[:50].tolist() and not set(new[50:]) & set(both)


def test_a_buffer_that_is_filled_again_holds_other_rows() -> None:
    b, buffer = book(), RNG.normal(size=(64, 3))
    before = ids(b, buffer)
    buffer[:] = RNG.normal(size=(64, 3))
    assert not set(before) & set(ids(b, buffer))
    kept = ids(b, buffer)
    RNG.shuffle(buffer)  # the same rows in another order
    assert sorted(ids(b, buffer)) == sorted(kept) and ids(b, buffer).tolist() != kept.tolist()


def test_what_agrees_by_nature_is_no_proof() -> None:
    b = book()
    codes, other = RNG.integers(0, 3, (200, 4)).astype(float), RNG.integers(0, 3, (200, 4)).astype(float)
    assert not set(ids(b, codes)) & set(ids(b, other))
    assert not set(ids(b, codes)) & set(ids(b, codes[RNG.permutation(200)]))  # few distinct rows
    clock = np.arange(200.0)
    one, two = np.column_stack([clock, codes]), np.column_stack([clock, other])
    assert not set(ids(b, one)) & set(ids(b, two))
    grid = RNG.normal(size=(200, 2))  # places that two tables share, with other measurements
    assert not set(ids(b, np.hstack([grid, RNG.normal(size=(200, 6))]))) & set(
        ids(b, np.hstack([grid, RNG.normal(size=(200, 6))]))
    )
    cents = RNG.integers(0, 500, 400) / 100  # agree by chance again and again
    assert not set(ids(b, cents[:200, None])) & set(ids(b, cents[200:, None]))
    assert not set(ids(b, RNG.normal(size=(5, 3)))) & set(ids(b, RNG.normal(size=(5, 3))))


@pytest.mark.parametrize("rows", [3000, 40_000])
def test_of_many_rows_a_share_is_enough(rows: int) -> None:
    b, X = Book(link_rows=1024, memory=64 << 20), RNG.normal(size=(rows, 3))
    root = ids(b, X)
    order = RNG.permutation(rows)[: rows // 2]
    found = ids(b, X[order])
    known = found >= 0
    assert (found[known] == root[order][known]).all()
    assert 0.3 < known.mean() / (1024 / rows) < 2.5


def test_memory_is_bounded_and_arrays_are_let_go() -> None:
    b = Book(link_rows=1 << 18, memory=1 << 20)
    for _ in range(40):
        ids(b, RNG.normal(size=(4000, 3)))
    assert b._bytes <= 1 << 20 and not b._live


def test_what_is_used_stays_among_many_new_arrays() -> None:
    b, X = book(), RNG.normal(size=(500, 4))
    root = ids(b, X)
    for _ in range(60):
        ids(b, RNG.normal(size=(40, 4)))
        rows = RNG.permutation(500)[:50]
        assert ids(b, X[rows]).tolist() == root[rows].tolist()
    assert len(b._roots) <= 24


def test_sparse_matrices_and_text() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    b, S = book(), sparse.random(400, 50, 0.2, format="csr", random_state=0)
    root = ids(b, S)
    order = RNG.permutation(400)[:100]
    assert ids(b, S[order]).tolist() == root[order].tolist()
    assert ids(b, S.tocsc()).tolist() == root.tolist()
    words = [f"document {i} {i * 7919 % 1000}" for i in range(400)]
    text = ids(b, words)
    assert ids(b, [words[i] for i in order]).tolist() == text[order].tolist()
    assert ids(b, np.array(words, dtype=object)).tolist() == text.tolist()


def test_pandas_and_polars_tables() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    b = book()
    values = RNG.normal(size=(300, 4))
    df = pd.DataFrame(values, columns=list("abcd"))
    df["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 10**9, 300), unit="s")
    df["who"] = [f"n{i * 37 % 300}" for i in range(300)]
    df["gap"] = pd.array(np.where(values[:, 0] > 0, 1, 2), dtype="Int64")
    df.loc[::5, "gap"] = pd.NA
    root = ids(b, df)
    part = df.sample(frac=0.5, random_state=0)
    assert ids(b, part).tolist() == root[part.index].tolist()
    assert ids(b, df[["b", "d"]]).tolist() == root.tolist()
    assert ids(b, df[["b", "d"]].to_numpy()).tolist() == root.tolist()
    assert ids(b, pl.DataFrame(values, schema=list("abcd"))).tolist() == root.tolist()
    scaled = df.copy()
    scaled[list("abcd")] = 2 * values + 1
    assert ids(b, scaled[["a", "b", "who", "when"]]).tolist() == root.tolist()  # two columns are as they were


def test_bad_input_is_no_array_and_no_error() -> None:
    b = book()
    for odd in (
        iter([1, 2]),
        3,
        "text",
        None,
        {"a": 1},
        np.float64(3),
        np.zeros((3, 0)),
        np.zeros((0, 3)),
        [],
        [[1], [1, 2]],
    ):
        view = columns(odd)
        assert view is None or b.look(odd) is None or view.n > 0
    for fine in (
        np.full((50, 3), np.nan), np.full((50, 2), np.inf), np.zeros((50, 3)), np.array([[None, "a"]] * 20, dtype=object),
        np.array([object()] * 20), np.zeros((20, 3, 4, 2)), np.array(["2024-01-01"] * 20, dtype="M8[s]"), [{"a": 1}] * 20,
        np.zeros(30, dtype=bool), np.ones((10, 600)), [None] * 20,
    ):  # fmt: skip
        assert b.look(fine) is not None
    assert b.look(np.zeros(5, dtype=complex)) is None and b.unknown > 0


def test_patterns_are_those_of_the_number() -> None:
    same = [np.array([1, 0, 3], t) for t in (np.int8, np.int64, np.uint16, np.float32, np.float64)]
    assert len({patterns(a).tobytes() for a in same}) == 1
    assert patterns(np.array([-0.0])) == patterns(np.array([0.0])) == patterns(np.array([np.nan])) == 0
    assert patterns(np.array([1.5, None, "x"], dtype=object))[0] == patterns(np.array([1.5]))[0]
