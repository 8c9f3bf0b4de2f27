from __future__ import annotations

import json
import linecache
import os
from pathlib import Path

import pytest

from osler.render.source import MAX_BYTES, MAX_WIDTH, excerpt, reader


def test_lines_around(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("".join(f"line {i}\n" for i in range(1, 11)))
    found = excerpt(str(file), 5)
    assert found is not None
    assert (found.line, found.first, found.lines) == (5, 3, ("line 3", "line 4", "line 5", "line 6", "line 7"))
    assert found.marked == "line 5"
    start = excerpt(str(file), 1)
    assert start is not None and (start.first, start.marked) == (1, "line 1")
    end = excerpt(str(file), 10)
    assert end is not None and end.lines == ("line 8", "line 9", "line 10")


@pytest.mark.parametrize("line", [0, -1, 12, 10**9])
def test_no_such_line(tmp_path: Path, line: int) -> None:
    file = tmp_path / "a.py"
    file.write_text("x\n" * 10)
    assert excerpt(str(file), line) is None


def test_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    for name in ("missing.py", "fifo", "huge.py", ".", "a\0b"):
        assert excerpt(str(tmp_path / name), 1) is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "x = 'é'"),
        ("\ufeffimport a\nx = 'é'\n".encode(), "x = 'é'"),
        ("a\nx = 'é'\n".encode("latin-1"), "x = 'é'"),
        (b"# coding: no-such-codec\nx = 1\n", "x = 1"),
        (b"a\r\nx = 2\r\n", "x = 2"),
        (b"a\rx = 3\r", "x = 3"),
        (b"a\x0cb\nx = 4\n", "x = 4"),
        (b"\xff\xfe\x00\n\x1b[31mx = 5\n", "x = 5"),
        (b"a\n\tx = 6\n", "    x = 6"),
    ],
)
def test_encodings_and_line_ends(tmp_path: Path, raw: bytes, expected: str) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(raw)
    found = excerpt(str(file), 2)
    assert found is not None and found.marked == expected


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x" * 100_000)
    found = excerpt(str(file), 1)
    assert found is not None and len(found.marked) == MAX_WIDTH and found.marked.endswith("...")


def test_a_notebook_cell_comes_from_linecache() -> None:
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (10, None, ["a = 1\n", "b = 2\n"], name)
    try:
        found = reader("/somewhere")(name, 2)
    finally:
        del linecache.cache[name]
    assert found is not None and found.marked == "b = 2"


def test_a_missing_file_is_not_looked_for_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.py").write_text("wrong file\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir("/")
    assert excerpt("other.py", 1) is None


def test_relative_paths_start_at_the_script_s_directory(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("here\n")
    found = reader(str(tmp_path))("a.py", 1)
    assert found is not None and found.marked == "here"


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (["a = 1\n", "b = 2\n", "\n", "c = '\\n'"], ["a = 1", "b = 2", "", "c = '\\n'"]),
        (["a = 1\n", "b = 2\n"], ["a = 1", "b = 2", ""]),
        (["a =", " 1", "", "\nb = ", "2"], ["a = 1", "b = 2"]),
        (["", "a = 1"], ["a = 1"]),
        ("a = 1\nb = 2", ["a = 1", "b = 2"]),
        ([], [""]),
    ],
)
def test_a_cell_of_a_notebook(tmp_path: Path, source: object, lines: list[str], indent: int | None) -> None:
    file = tmp_path / "n.ipynb"
    cells = [{"cell_type": "markdown", "source": ["a = 0\n"] * 3}, {"cell_type": "code", "source": source}]
    text = json.dumps({"cells": cells}, indent=indent)
    file.write_text(text)
    read = reader(str(tmp_path))
    for number, line in enumerate(lines, 1):
        found = read("n.ipynb", number, 2)
        assert found is not None and (found.line, found.marked) == (number, line)
        if isinstance(source, list) and indent:
            # The line of the file in which it begins.
            assert json.dumps(line)[1:4] in text.split("\n")[found.file_line - 1] or not line
        else:
            assert '"source"' in text.split("\n")[found.file_line - 1]
    assert read("n.ipynb", len(lines) + 1, 2) is None and read("n.ipynb", 1, 3) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"cells": 3}', '{"cells": [{"source": 3}]}', "\udcff"])
def test_what_is_no_notebook(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.ipynb").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert excerpt(str(tmp_path / "n.ipynb"), 2, 1) is None
    assert excerpt(str(tmp_path / "gone.ipynb"), 1, 1) is None
