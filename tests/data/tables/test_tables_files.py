"""Files: every format, globs and folders, several files of one schema, and files that are not what they seem."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from osler.data.need import DataError
from osler.data.tables import Kind, open_source
from osler.data.tables.stdin import from_stdin

TABLE = pa.table(
    {
        "x": [1.5, None, float("inf")],
        "n": [1, 2, 3],
        "s": ["a", None, "c"],
        "t": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
        "l": [[1], [], None],
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(data: object, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        open_source(data).table()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def write_stream(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("form", ["parquet", "feather", "feather-lz4", "arrow", "arrows", "no-suffix"])
def test_formats(form: str) -> None:
    path = f"data.{form}" if form != "no-suffix" else "data"
    if form in ("parquet", "no-suffix"):
        pq.write_table(TABLE, path)
    elif form == "feather-lz4":
        path = "data.feather"
        feather.write_feather(TABLE, path, compression="lz4")
    elif form in ("feather", "arrow"):
        feather.write_feather(TABLE, path, compression="uncompressed")
    else:
        write_stream(TABLE, path)
    for given in (path, Path(path), [path], str(Path(path).absolute()), f"file://{Path(path).absolute()}"):
        source = open_source(given)
        assert source.table() == TABLE
    assert source.table(["l", "x"]).to_pydict() == TABLE.select(["l", "x"]).to_pydict()
    assert source.column("t").zone == "Europe/Berlin"
    assert open_source(path).name == path


def test_parquet_is_read_in_small_batches_across_row_groups() -> None:
    values = np.arange(10_000)
    pq.write_table(pa.table({"a": values, "b": values * 2}), "x.parquet", row_group_size=1500)
    source = open_source("x.parquet")
    assert source.rows == 10_000
    batches = list(source.batches(["b"], size=700))
    assert max(b.num_rows for b in batches) <= 700
    assert np.array_equal(np.concatenate([b.column(0).to_numpy() for b in batches]), values * 2)


def test_parquet_with_dotted_and_nested_names() -> None:
    table = pa.table({"a": [{"b": 1}], "a.b": [2], "a.b.c": [3], "z": [4]})
    pq.write_table(table, "x.parquet")
    source = open_source("x.parquet")
    assert source.table(["a.b"]).to_pydict() == {"a.b": [2]}
    assert source.table(["z", "a"]).to_pydict() == {"z": [4], "a": [{"b": 1}]}
    assert source.table(["a.b.c", "a.b"]).to_pydict() == {"a.b.c": [3], "a.b": [2]}


def test_duplicate_names_in_files() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["x", "y", "x"])
    pq.write_table(table, "x.parquet")
    write_stream(table, "x.arrows")
    feather.write_feather(pa.table({"x": [1]}), "ok.feather")
    for path in ("x.parquet", "x.arrows"):
        source = open_source(path)
        assert source.names == ("x", "y", "x.1")
        assert source.table(["x.1", "x"]).to_pydict() == {"x.1": [3], "x": [1]}
        assert "'x.1'" in source.notes[0]


def test_the_unnamed_index_of_pandas_is_left_out() -> None:
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"x": [1, 2, 3]}, index=[5, 6, 9]).to_parquet("i.parquet")
    assert "__index_level_0__" in pq.read_schema("i.parquet").names
    assert open_source("i.parquet").names == ("x",)
    pq.write_table(pa.table({"__index_level_0__": [1]}), "own.parquet")
    assert open_source("own.parquet").names == ("__index_level_0__",)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_in_files(rows: int) -> None:
    pq.write_table(TABLE[:rows], "x.parquet")
    feather.write_feather(TABLE[:rows], "x.feather")
    for path in ("x.parquet", "x.feather"):
        source = open_source(path)
        assert len(list(source.batches())) == rows
        assert source.table().num_rows == rows


def test_folder_with_partitions() -> None:
    for year, day, value in ((2025, "2025-01-01", 1.0), (2026, "2026-01-01", 2.0)):
        Path(f"d/year={year}/day={day}/name=a%20b").mkdir(parents=True)
        pq.write_table(pa.table({"x": [value, value]}), f"d/year={year}/day={day}/name=a%20b/part-0.parquet")
    Path("d/_SUCCESS").touch()
    Path("d/.hidden.parquet").write_bytes(b"junk")
    Path("d/README.md").write_text("about")
    for given in ("d", "d/*", "d/*/*/*/*.parquet", "d/**/*.parquet"):
        source = open_source(given)
        assert [(c.name, c.kind) for c in source.columns] == [
            ("x", Kind.NUMBER),
            ("year", Kind.INTEGER),
            ("day", Kind.TIME),
            ("name", Kind.CATEGORY),
        ]
        assert source.rows == 4
        assert source.table(["year", "x"]).to_pydict() == {"year": [2025, 2025, 2026, 2026], "x": [1.0, 1.0, 2.0, 2.0]}
        assert source.table(["name"]).to_pydict() == {"name": ["a b"] * 4}


def test_missing_partition_value_is_null() -> None:
    for value in ("1", "__HIVE_DEFAULT_PARTITION__"):
        Path(f"d/k={value}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0]}), f"d/k={value}/a.parquet")
    assert open_source("d").table(["k"]).to_pydict() == {"k": [1, None]}


def test_files_of_one_schema_in_another_order_and_width() -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"], "c": [1]}), "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": pa.array([2], pa.int64()), "c": [1.5]}), "2.parquet")
    pq.write_table(pa.table({"b": pa.array(["z"]).dictionary_encode(), "a": [3], "c": pa.nulls(1)}), "3.parquet")
    source = open_source("*.parquet")
    assert source.notes == ()
    assert source.table().to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [1.0, 1.5, None]}
    assert source.column("a").type == pa.int64()
    assert open_source(["2.parquet", "1.parquet"]).table(["a"]).to_pydict() == {"a": [2, 1]}


def test_a_column_that_some_files_lack() -> None:
    pq.write_table(pa.table({"a": [1], "b": [1]}), "1.parquet")
    pq.write_table(pa.table({"a": [2]}), "2.parquet")
    source = open_source("*.parquet")
    assert source.table().to_pydict() == {"a": [1, 2], "b": [1, None]}
    assert source.table(["b"]).to_pydict() == {"b": [1, None]}
    assert "1 of 2 files lack the column 'b' (the first is 2.parquet)" in source.notes[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(["x"]), pa.array([1])),
        (pa.array([True]), pa.array([1])),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC"))),
        (pa.array([[1]]), pa.array([1])),
    ],
)
def test_files_that_do_not_fit_together(one: pa.Array, other: pa.Array) -> None:
    pq.write_table(pa.table({"a": one}), "1.parquet")
    pq.write_table(pa.table({"a": other}), "2.parquet")
    fails("*.parquet", "2.parquet: column 'a' is", "in 1.parquet")


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (pa.array([2**64 - 1], pa.uint64()), pa.array([-1]), [2.0**64, -1.0]),
        (pa.array([2**60 + 1]), pa.array([0.5]), [2.0**60, 0.5]),
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("s")), None),
        (pa.array([0], pa.timestamp("s", "UTC")), pa.array([0], pa.timestamp("ns", "Europe/Berlin")), None),
        (pa.array([0.5], pa.float16()), pa.array([0.5], pa.float64()), [0.5, 0.5]),
        (pa.array(["a"], pa.string_view()), pa.array(["b"]), ["a", "b"]),
    ],
)
def test_types_that_widen(one: pa.Array, other: pa.Array, together: list[float] | None) -> None:
    feather.write_feather(pa.table({"a": one}), "1.feather", compression="uncompressed")
    feather.write_feather(pa.table({"a": other}), "2.feather", compression="uncompressed")
    found = open_source("*.feather").table()["a"].to_pylist()
    assert found == together if together else found[0] == found[1]


def test_missing_files() -> None:
    pq.write_table(TABLE, "today.parquet")
    fails("todday.parquet", "there is no such file", "did you mean 'today.parquet'?")
    fails("nowhere/x.parquet", "there is no folder nowhere")
    fails("*.csv", "no file matches")
    fails("nowhere/*.csv", "no file matches", "no folder nowhere")
    fails(["today.parquet", "absent.parquet"], "absent.parquet")
    Path("empty").mkdir()
    fails("empty", "folder without data", "no files")
    Path("empty/notes.docx").touch()
    fails("empty", "none of its 1 files")
    fails("s3://bucket/x.parquet", "local files")
    fails("x" * 5000, "x")
    fails("a\x00b", "null")


def test_damaged_files() -> None:
    pq.write_table(TABLE, "x.parquet")
    whole = Path("x.parquet").read_bytes()
    Path("empty.parquet").touch()
    fails("empty.parquet", "empty.parquet is empty")
    Path("cut.parquet").write_bytes(whole[: len(whole) // 2])
    fails("cut.parquet", "cut.parquet is no complete parquet file", "end is missing")
    Path("junk.parquet").write_bytes(b"hello, this is text\n")
    fails("junk.parquet", "is no parquet file", "does not begin with PAR1")
    footer = int.from_bytes(whole[-8:-4], "little")
    garbled = bytearray(whole)
    garbled[-8 - footer : -8] = os.urandom(footer)
    Path("garbled.parquet").write_bytes(bytes(garbled))
    fails("garbled.parquet", "garbled.parquet")
    pages = bytearray(whole)
    pages[4 : len(whole) - 8 - footer] = b"\xff" * (len(whole) - 12 - footer)
    Path("pages.parquet").write_bytes(bytes(pages))
    fails("pages.parquet", "pages.parquet is damaged")
    feather.write_feather(TABLE, "x.feather", compression="uncompressed")
    whole = Path("x.feather").read_bytes()
    Path("cut.feather").write_bytes(whole[: len(whole) // 2])
    fails("cut.feather", "cut.feather is a damaged or unfinished Arrow file")
    Path("junk.arrow").write_bytes(b"hello")
    fails("junk.arrow", "is no Arrow file")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.parquet", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        ("x.csv", b"<!DOCTYPE html><html></html>", "HTML"),
        ("x.xlsx", b"PK\x03\x04rest", "Excel"),
        ("x.zip", b"PK\x03\x04rest", "zip"),
        ("x.csv", b"a\x00b\x00\x01\x02" * 20, "neither"),
        ("x.jsonl", b'{"a": 1}\n', "JSON"),
        ("x.pkl", pickle.dumps({"a": [1]}), "pickle"),
        ("x.db", b"SQLite format 3\x00rest", "SQLite"),
        ("x.npy", b"junk", "no numpy file"),
    ],
)
def test_files_that_are_something_else(name: str, content: bytes, words: str) -> None:
    Path(name).write_bytes(content)
    fails(name, name, words)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_permission() -> None:
    pq.write_table(TABLE, "x.parquet")
    Path("x.parquet").chmod(0)
    fails("x.parquet", "no permission")


def test_mixed_formats() -> None:
    Path("d").mkdir()
    pq.write_table(TABLE, "d/a.parquet")
    Path("d/b.csv").write_text("x\n1\n")
    fails("d", "different formats", "a.parquet", "b.csv")


def test_numpy_files() -> None:
    np.save("x.npy", np.arange(6.0).reshape(3, 2))
    assert open_source("x.npy").table().to_pydict() == {"0": [0.0, 2.0, 4.0], "1": [1.0, 3.0, 5.0]}
    np.savez("x.npz", a=np.arange(3), b=np.array(["x", "y", "z"]))
    assert open_source("x.npz").table().to_pydict() == {"a": [0, 1, 2], "b": ["x", "y", "z"]}
    np.savez("uneven.npz", a=np.arange(3), b=np.arange(2))
    fails("uneven.npz", "different length")
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:100])
    fails("cut.npy", "cut.npy")


def test_object_arrays_are_never_unpickled() -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (os.mkdir, ("trapped",))

    np.save("x.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez("x.npz", a=np.array([Trap()], dtype=object))
    for path in ("x.npy", "x.npz"):
        fails(path, path, "does not load", "astype(float)")
    assert not Path("trapped").exists()


def test_delta_table() -> None:
    deltalake = pytest.importorskip("deltalake")
    first = pa.table({"x": [1.0, 2.0], "k": ["a", "b"]})
    deltalake.write_deltalake("t", first, partition_by=["k"])
    deltalake.write_deltalake("t", pa.table({"x": [3.0], "k": ["a"], "y": [1]}), mode="append", schema_mode="merge")
    source = open_source("t")
    assert source.rows == 3 and set(source.names) == {"x", "k", "y"}
    rows = sorted(zip(*source.table(["x", "k", "y"]).to_pydict().values()))
    assert rows == [(1.0, "a", None), (2.0, "b", None), (3.0, "a", 1)]
    deltalake.write_deltalake("t", first, mode="overwrite", schema_mode="overwrite")
    assert open_source("t").rows == 2  # the files that were replaced still lie in the folder
    fails(["t", "t"], "Delta table")
    Path("broken/_delta_log").mkdir(parents=True)
    fails("broken", "broken is no readable Delta table")


def test_delta_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t/_delta_log").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    fails("t", "deltalake", "pip install")


def test_standard_input() -> None:
    pq.write_table(TABLE, "x.parquet")
    feather.write_feather(TABLE, "x.feather", compression="uncompressed")
    write_stream(TABLE, "x.arrows")
    for path in ("x.parquet", "x.feather", "x.arrows"):
        source = from_stdin(stream=io.BytesIO(Path(path).read_bytes()))
        assert source.repeatable == (path != "x.arrows")
        assert source.name == "standard input"
        assert source.table() == TABLE
        if source.repeatable:
            assert source.table(["n"]).to_pydict() == {"n": [1, 2, 3]}
    assert from_stdin(stream=io.BytesIO(b"a,b\n1,x\n")).table().to_pydict() == {"a": [1], "b": ["x"]}
    for content, words in ((b"", "is empty"), (b"\x93NUMPY....", "numpy"), (b"\x00" * 100, "neither")):
        with pytest.raises(DataError, match=words):
            from_stdin(stream=io.BytesIO(content))
    with pytest.raises(DataError, match="standard input"):
        from_stdin(stream=io.BytesIO(Path("x.parquet").read_bytes()[:200]))


def test_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"a\n1\n")
        closed = False

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert open_source("-", name="current").table().to_pydict() == {"a": [1]}


def test_delta_table_that_only_its_own_engine_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake("t", pa.table({"x": [1.0, 2.0], 'a "b"': ["u", "v"]}))

    def refuse(*_: object, **__: object) -> None:
        raise deltalake.exceptions.DeltaProtocolError("deletion vectors")

    monkeypatch.setattr(deltalake.DeltaTable, "to_pyarrow_dataset", refuse)
    source = open_source("t")
    assert source.rows == 2
    assert source.table(['a "b"', "x"]).to_pydict() == {'a "b"': ["u", "v"], "x": [1.0, 2.0]}


def test_importing_is_light() -> None:
    heavy = ["pandas", "polars", "narwhals", "torch", "sklearn", "scipy", "numba", "deltalake", "pyspark"]
    code = f"import sys, osler.data.tables; print([m for m in {heavy} if m in sys.modules])"
    pq.write_table(TABLE, "x.parquet")
    code += f"\nosler.data.tables.open_source('x.parquet').table(); print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.split("\n")[:2] == ["[]", "[]"]


def test_memory_does_not_grow_with_the_row_groups() -> None:
    values = np.random.default_rng(0).normal(size=1_000_000)
    pq.write_table(pa.table({f"c{i}": values + i for i in range(10)}), "x.parquet", use_dictionary=False)
    code = (
        "import resource, pyarrow as pa\nfrom osler.data.tables import floats, open_source\n"
        "total = 0.0\nfor batch in open_source('x.parquet').batches(size=16384):\n"
        "    total += sum(floats(c)[0] for c in batch.columns)\n"
        "print(pa.default_memory_pool().max_memory())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert int(out) < 24 << 20  # the columns take 80 MB
