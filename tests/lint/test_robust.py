"""Whatever a file holds: one clear line, and the rest goes on."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import osler
from osler.core.settings.lint import Lint
from osler.lint.linter import Linter
from osler.lint.plan import Plan
from osler.lint.session import lint

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
fuzz = importlib.import_module("lint_fuzz")

CELL = {"cell_type": "code"}


def told(name: str, data: bytes, plan: Plan = Plan()) -> list[str]:  # noqa: B008
    Path(name).write_bytes(data)
    return [t.at(name) for t in Linter(plan).lint(name).troubles]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbfx = 1\n",
        b"\tx = 1\n"[1:],
        b"if 1:\n\tx = 1\n\x0c\ny = 2\n",
        b"x = 1\r\ny = '''a\r\nb'''\r\n",
        b"x = 1\ry = 2\r",
        b"# -*- coding: cp1252 -*-\nx = '\x80'\n",
        b"x = 1\x1a"[:-1],
        b"#!/usr/bin/python\x00"[:-1] + b"\nx = 1",
        ("x = " + "1 + " * 5000 + "1\n").encode(),
        ("x = " + "[" * 50 + "]" * 50 + "\n").encode(),
        b"def f(x):\n    match x:\n        case {'a': [1, *_]}: pass\n",
    ],
)
def test_these_are_read(here: Path, data: bytes) -> None:
    assert told("a.py", data) == []


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\x7fELF\x00\x01\x02", "a.py: is binary"),
        (b"x = '\xe4'\n", "a.py: cannot be decoded: "),
        (b"# coding: klingon\n", "a.py: cannot be decoded: unknown encoding: klingon"),
        (b"\xef\xbb\xbf# coding: latin-1\n", "a.py: cannot be decoded: "),
        (b"print 'hello'\n", "a.py:1: does not parse: "),
        (b"try:\n    pass\nexcept A, e:\n    pass\n", "a.py:3: does not parse: "),
        (b"if 1:\n\tx\n        y\n", "a.py:3: does not parse: "),
        (b"def f(:\n", "a.py:1: does not parse: invalid syntax"),
        (b"x = 1\n" * 10 + b"y = '\x00'\n", "a.py: is binary"),
        (b"(" * 3000, "a.py"),
        (b"\xff\xfex\x00=\x001\x00", "a.py: is binary"),
    ],
)
def test_these_get_one_clear_line(here: Path, data: bytes, line: str) -> None:
    (got,) = told("a.py", data)
    assert got.startswith(line) and "\n" not in got


def test_python_2_is_named(here: Path) -> None:
    assert "Python 2" in told("a.py", b"print 'hello'\n")[0]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python knows t-strings")
def test_newer_syntax_is_a_line(here: Path) -> None:
    (line,) = told("a.py", b"x = t'{1}'\n")
    assert line.startswith("a.py:1: does not parse")


def test_a_sum_of_many_terms_does_not_crash(here: Path, checks: list[SimpleNamespace]) -> None:
    def everything(facts):  # type: ignore[no-untyped-def]
        list(facts.events(".step"))
        return iter(())

    checks.append(SimpleNamespace(RULE="test-both", CALLS=frozenset(), check=everything))
    for terms in (900, 20_000):
        result = told("a.py", ("x = " + "y + " * terms + "1\n").encode())
        assert all("nested too deeply" in line for line in result)
    nested = "".join("    " * n + f"if x{n}:\n" for n in range(90)) + "    " * 90 + "pass\n"
    assert all("nested too deeply" in line or "too many" in line for line in told("a.py", nested.encode()))


def test_a_megabyte_is_read_and_too_much_is_left_out(here: Path) -> None:
    start = time.process_time()
    assert told("a.py", b"x = [1, 2, 3]\n" * 75_000) == []
    assert time.process_time() - start < 30
    assert told("a.py", b"x = 1\n" * 100, Plan(settings=Lint(max_mb=0.0005))) == [
        "a.py: has 0.0 MB; files beyond 0.0005 MB are left out"
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["n.ipynb: is no notebook: "]),
        ("{", ["n.ipynb: is no notebook: "]),
        ("[]", ["n.ipynb: is no notebook: its JSON is no object"]),
        ('{"cells": 3}', ["n.ipynb: is no notebook: it has no cells"]),
        ('{"cells": [1, null, {}, {"cell_type": "code"}]}', []),
        ('{"cells": [{"cell_type": "code", "source": [1, "x = 1"]}]}', ["n.ipynb:cell 1:1: does not parse"]),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}', ["n.ipynb: is a notebook in R"]),
        ("\xff", ["n.ipynb: is no notebook: "]),
        ("[" * 100_000, ["n.ipynb: is no notebook: "]),
    ],
)
def test_broken_notebooks(here: Path, text: str, lines: list[str]) -> None:
    got = told("n.ipynb", text.encode("latin-1"))
    assert len(got) == len(lines)
    assert all(g.startswith(w) for g, w in zip(got, lines, strict=True))


def test_magics_and_a_cell_that_was_never_finished(here: Path, checks: object) -> None:
    cells = [
        CELL | {"source": "%matplotlib inline\n!pip install x\nimport thing\nfiles = !ls\nthing?"},
        CELL | {"source": "%%bash\nls | head"},
        CELL | {"source": "%%time\nthing.load(a)"},
        CELL | {"source": "def f(:"},
        CELL | {"source": "await x\nif a:\n    %time y\nthing.load(b)"},
    ]
    Path("n.ipynb").write_text(json.dumps({"cells": cells}))
    result = Linter(Plan()).lint("n.ipynb")
    assert [t.at("n.ipynb") for t in result.troubles] == ["n.ipynb:cell 4:1: does not parse: invalid syntax"]
    assert result.read
    assert [(n.finding.where.cell, n.finding.where.line) for n in result.noted] == [(3, 2), (5, 4)]


def test_things_that_are_no_files(here: Path) -> None:
    os.mkfifo("pipe.py")
    Path("dir.py").mkdir()
    Path("broken.py").symlink_to("nowhere")
    outcome = lint(["pipe.py", "dir.py", "broken.py", "gone.py"])
    assert [t.message for _, t in outcome.troubles()] == [
        "is no file",
        "is a folder",
        "cannot be read: No such file or directory",
        "cannot be read: No such file or directory",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(here: Path) -> None:
    Path("a.py").touch(0)
    assert lint(["a.py"]).troubles()[0][1].message == "cannot be read: Permission denied"


def test_a_check_that_crashes_names_file_and_rule(here: Path, checks: list[SimpleNamespace]) -> None:
    def crash(facts: object) -> None:
        raise KeyError("what\never")

    checks.insert(0, SimpleNamespace(RULE="test-both", CALLS=frozenset(), check=crash))
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    result = Linter(Plan()).lint("a.py")
    (trouble,) = result.troubles
    assert trouble.at("a.py") == "osler failed on a.py in test-both: KeyError: 'what\\never'; please report it"
    assert len(result.noted) == 1 and result.read


def test_a_file_that_takes_too_long_is_given_up(here: Path, checks: list[SimpleNamespace]) -> None:
    def forever(facts: object) -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                pass

    checks.insert(0, SimpleNamespace(RULE="test-both", CALLS=frozenset({"wait"}), check=forever))
    Path("a.py").write_text("import thing\nthing.wait()\n")
    Path("b.py").write_text("import thing\nthing.load(a)\n")
    outcome = lint(["a.py", "b.py"], Plan(settings=Lint(seconds=0.3)))
    assert [t.at(p) for p, t in outcome.troubles()] == ["a.py: took longer than 0.3 s of work and was given up"]
    assert len(outcome.noted()) == 1


def test_mutated_sources_never_crash_it(here: Path) -> None:
    assert fuzz.crashes(fuzz.sources()[:400], count=40, seed=5) == []


def test_nothing_fails_on_a_real_project() -> None:
    """osler's own: packages that import each other, names looked up under conditions, star imports, notebooks' code."""
    home = Path(osler.__file__).parent
    linter = Linter(Plan((2, 6)))
    for part in ("app", "cli", "lint", "syntax"):
        for path in sorted((home / part).rglob("*.py")):
            assert linter.lint(str(path)).troubles == []
