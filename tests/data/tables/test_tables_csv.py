"""Text files: types that hold for the whole file, dialects, and rows that do not fit."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from osler.data.need import DataError
from osler.data.tables import Kind, delimited, open_source


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, and nothing kept, so that a small file behaves as a large one."""
    monkeypatch.setattr(delimited, "_SCAN_BLOCK", 1 << 10)
    monkeypatch.setattr(delimited, "_READ_BLOCK", 1 << 10)
    monkeypatch.setattr(delimited.TextPart.__init__, "__defaults__", (None, 0))
    monkeypatch.setattr(delimited, "KEEP", 0)


def read(text: str | bytes, name: str = "x.csv", encoding: str = "utf-8") -> dict[str, list[object]]:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return open_source(name).table().to_pydict()


def fails(text: str | bytes, *words: str, name: str = "x.csv") -> None:
    with pytest.raises(DataError) as caught:
        read(text, name)
    message = str(caught.value)
    assert "\n" not in message
    for word in (name, *words):
        assert word in message, message


def test_types() -> None:
    Path("x.csv").write_text(
        "i,f,b,s,d,t,z,o,n\n"
        "1,1.5,true,a,2026-01-01,2026-01-01 12:00:00,2026-01-01T00:00:00Z,12:30:00,\n"
        ",inf,,,,,,,\n"
        "-3,-Infinity,false,NA,2026-01-02,2026-01-01 12:00:00.5,2026-01-01T02:00:00+02:00,12:31:00,\n"
    )
    source = open_source("x.csv")
    assert [c.kind for c in source.columns] == [
        Kind.INTEGER,
        Kind.NUMBER,
        Kind.BOOLEAN,
        Kind.CATEGORY,
        Kind.TIME,
        Kind.TIME,
        Kind.TIME,
        Kind.DURATION,
        Kind.NULL,
    ]
    assert source.rows == 3
    table = source.table()
    assert table["f"].to_pylist() == [1.5, float("inf"), float("-inf")]
    assert table["s"].to_pylist() == ["a", None, None]
    zoned = table["z"].to_pylist()
    assert zoned[0] == zoned[2] and source.column("z").zone == "UTC"
    assert source.column("t").zone is None


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("first", "later", "kind", "value"),
    [
        ("1", "2.5", Kind.NUMBER, 2.5),
        ("1", "text", Kind.CATEGORY, "text"),
        ("1", "99999999999999999999", Kind.NUMBER, 1e20),
        ("1.5", "text, quoted", Kind.CATEGORY, "text, quoted"),
        ("", "7", Kind.INTEGER, 7),
        ("", "x", Kind.CATEGORY, "x"),
        ("", "2026-01-01", Kind.TIME, None),
        ("true", "maybe", Kind.CATEGORY, "maybe"),
        ("true", "1.5", Kind.CATEGORY, "1.5"),
        ("2026-01-01", "2026-01-01 10:00:00", Kind.TIME, None),
        ("2026-01-01", "2026-01-01 10:00:00.123456", Kind.TIME, None),
        ("2026-01-01 10:00:00", "yesterday", Kind.CATEGORY, "yesterday"),
        ("2026-01-01 10:00:00", "2026-01-01 10:00:00Z", Kind.CATEGORY, "2026-01-01 10:00:00Z"),
        ("10:00:00", "noon", Kind.CATEGORY, "noon"),
        ("1", 'say "so"', Kind.CATEGORY, 'say "so"'),
        ("1", "it's, 'so'", Kind.CATEGORY, "it's, 'so'"),
    ],
)
def test_a_later_row_widens_the_type(first: str, later: str, kind: Kind, value: object) -> None:
    quoted = '"' + later.replace('"', '""') + '"'
    Path("x.csv").write_text("k,v\n" + f"1,{first}\n" * 2000 + f"2,{quoted}\n" + f"1,{first}\n" * 2000)
    source = open_source("x.csv")
    assert source.column("v").kind is kind
    assert source.column("k").kind is Kind.INTEGER
    assert source.rows == 4001
    assert source.column("v").type == source.table(["v"]).schema.field(0).type
    for _ in range(2):
        batches = list(source.batches(["v", "k"], size=100))
        assert all(b.num_rows <= 100 for b in batches)
        table = pa.Table.from_batches(batches)
        assert table.num_rows == 4001 and table["k"].to_pylist().index(2) == 2000
        if value is not None:
            assert table["v"][2000].as_py() == value


@pytest.mark.usefixtures("small_blocks")
def test_several_columns_widen() -> None:
    lines = ["a,b,c"] + ["1,1,1"] * 1000 + ["x,1,1"] + ["1,1,1"] * 1000 + ["1,y,2.5"]
    Path("x.csv").write_text("\n".join(lines))
    source = open_source("x.csv")
    assert [c.kind for c in source.columns] == [Kind.CATEGORY, Kind.CATEGORY, Kind.NUMBER]
    assert source.table()["a"][1000].as_py() == "x"


@pytest.mark.usefixtures("small_blocks")
def test_many_columns_widen() -> None:
    count = 30
    lines = [",".join(f"c{i}" for i in range(count))] + [",".join("1" * count)] * 200
    for i in range(count):
        lines.append(",".join(("x", "2.5", "2026-01-01")[i % 3] if j == i else "" for j in range(count)))
    Path("x.csv").write_text("\n".join(lines))
    source = open_source("x.csv")
    assert [c.kind for c in source.columns] == [Kind.CATEGORY, Kind.NUMBER, Kind.CATEGORY] * (count // 3)
    assert source.table()["c0"][200].as_py() == "x" and source.table()["c1"][201].as_py() == 2.5


def test_small_and_streamed_reading_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("x.csv").write_text("a,b\n" + "".join(f'{i},"line {i}\nand more"\n' for i in range(3000)))
    kept = open_source("x.csv").table()
    monkeypatch.setattr(delimited, "_SCAN_BLOCK", 1 << 12)
    monkeypatch.setattr(delimited, "_READ_BLOCK", 1 << 12)
    monkeypatch.setattr(delimited, "KEEP", 0)
    streamed = open_source("x.csv")
    assert streamed.table() == kept
    assert kept["b"][2].as_py() == "line 2\nand more"


def test_ragged_rows_name_the_row() -> None:
    fails("a,b\n1,2\n3\n", "row 3", "1 fields", "the header has 2", "mend")
    fails("a,b\n1,2\n3,4,5\n", "row 3 has 3 fields")
    fails("a,b\n" + "1,2\n" * 5000 + "1,2,3\n", "row 5002 has 3 fields")


def test_a_quote_that_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_SCAN_BLOCK", 1 << 12)
    fails('a,b\n1,"2\n' + "3,4\n" * 5000, "quotation mark")


def test_encodings() -> None:
    assert read("ä,b\n1,ü\n") == {"ä": [1], "b": ["ü"]}
    assert read("ä,b\n1,ü\n", encoding="utf-8-sig") == {"ä": [1], "b": ["ü"]}
    assert read("ä,b\n1,ü\n", encoding="utf-16") == {"ä": [1], "b": ["ü"]}
    fails("a,b\n1,x\n2,ü\n".encode("cp1252"), "row 3", "column 'b'", "UTF-8", "iconv")
    fails("a,ü\n1,x\n".encode("cp1252"), "UTF-8", "iconv")


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("a,b\n1,2\n", "x.csv", {"a": [1], "b": [2]}),
        ("a;b\n1;2\n", "x.csv", {"a": [1], "b": [2]}),
        ("a\tb\n1\t2\n", "x.tsv", {"a": [1], "b": [2]}),
        ("a\tb\n1\t2\n", "x.txt", {"a": [1], "b": [2]}),
        ("a|b\n1|2\n", "x.csv", {"a": [1], "b": [2]}),
        ("a\n1\n2\n", "x.csv", {"a": [1, 2]}),
        ("a,b\r\n1,2\r\n", "x.csv", {"a": [1], "b": [2]}),
        ("a,b\n1,2", "x.csv", {"a": [1], "b": [2]}),
        ('text,b\n"one; two; three",1\nx,2\n', "x.csv", {"text": ["one; two; three", "x"], "b": [1, 2]}),
        ("a;b;c\n1,5;x;1\n-2,25;y;2\n;z;3\n", "x.csv", {"a": [1.5, -2.25, None], "b": ["x", "y", "z"], "c": [1, 2, 3]}),
        ('"a\nb",c\n1,2\n', "x.csv", {"a\nb": [1], "c": [2]}),
        ("x,x,y\n1,2,3\n", "x.csv", {"x": [1], "x.1": [2], "y": [3]}),
        ("a,\n1,2\n", "x.csv", {"a": [1], "Unnamed: 1": [2]}),
    ],
)
def test_dialects(text: str, name: str, expected: dict[str, list[object]]) -> None:
    assert read(text, name) == expected


def test_a_saved_index_is_left_out() -> None:
    assert read(",x\n0,5\n1,6\n") == {"x": [5, 6]}
    assert "left out" in open_source("x.csv").notes[0]
    assert read(",x\n7,5\n9,6\n") == {"Unnamed: 0": [7, 9], "x": [5, 6]}
    assert read(",x\na,5\nb,6\n") == {"Unnamed: 0": ["a", "b"], "x": [5, 6]}


def test_a_file_without_a_header() -> None:
    assert read("1.5,2\n3.5,4\n") == {"0": [1.5, 3.5], "1": [2, 4]}
    assert "no header" in open_source("x.csv").notes[0]
    assert read("0,1\n3.5,4\n") == {"0": [3.5], "1": [4]}  # what pandas writes for an array


@pytest.mark.parametrize("text", ["a,b\n", "a,b"])
def test_only_a_header(text: str) -> None:
    assert read(text) == {"a": [], "b": []}
    source = open_source("x.csv")
    assert source.rows == 0 and source.column("a").kind is Kind.NULL


@pytest.mark.parametrize("text", ["\n", " \n \n", "\ufeff"])
def test_nothing(text: str) -> None:
    fails(text, "empty")


def test_compressed() -> None:
    text = b"a,b\n1,x\n2,y\n"
    expected = {"a": [1, 2], "b": ["x", "y"]}
    assert read(gzip.compress(text), "x.csv.gz") == expected
    assert read(gzip.compress(text), "x.csv") == expected
    assert read(bz2.compress(text), "x.csv.bz2") == expected
    assert read(pa.compress(text, "zstd", asbytes=True), "x.csv.zst") == expected
    assert read(gzip.compress(b"a\tb\n1\t2\n"), "x.tsv.gz") == {"a": [1], "b": [2]}
    fails(gzip.compress(text * 50_000)[:-2000], "x.csv.gz", name="x.csv.gz")


def test_several_files_agree_on_types() -> None:
    Path("1.csv").write_text("id,x,only\n1,1,5\n")
    Path("2.csv").write_text("x,id\n2.5,A7\n")
    source = open_source("*.csv")
    assert source.table().to_pydict() == {"id": ["1", "A7"], "x": [1.0, 2.5], "only": [5, None]}
    assert any("'id' is int64 in 1.csv and text elsewhere" in note for note in source.notes)
    assert any("lack the column 'only'" in note for note in source.notes)


def test_messages_hold_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError) as caught:
        read("name,b\nSECRET,2\nSECRET,2,SECRET\n")
    assert "SECRET" not in str(caught.value)
