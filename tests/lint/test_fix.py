"""Fixes: bytes outside the edit stay, what does not help is taken back, rounds end."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from osler.lint.cells import replaced, sources
from osler.lint.edits import CannotEdit, apart, edited
from osler.lint.facts import Facts
from osler.lint.fix import Mended, diff, mend, write
from osler.lint.hit import Edit, Fix, Hit
from osler.lint.plan import Plan
from osler.syntax.values import Site


def mended(path: str, leaders: tuple[str, ...] = ()) -> Mended:
    return mend(path, leaders, lambda noted, results: noted, Plan(), _checks())


def _checks() -> list[SimpleNamespace]:
    from osler.lint import linter

    return linter.CHECKS  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import thing\nthing.load(a)\n", b"import thing\nthing.load(a, safe=True)\n"),
        (b"import thing\r\n\tthing\r\nthing.load()", None),
        (b"import thing\r\nif 1:\r\n\tthing.load(a)\r\n", b"import thing\r\nif 1:\r\n\tthing.load(a, safe=True)\r\n"),
        (b"\xef\xbb\xbfimport thing; thing.load(a)", b"\xef\xbb\xbfimport thing; thing.load(a, safe=True)"),
        (
            b"# coding: latin-1\nimport thing\n\x0cx = '\xe4\xdf'; thing.load('\xe4')  # \xfc\n",
            b"# coding: latin-1\nimport thing\n\x0cx = '\xe4\xdf'; thing.load('\xe4', safe=True)  # \xfc\n",
        ),
        (
            "import thing\nä = '😀'; thing.load(ä)\n".encode(),
            "import thing\nä = '😀'; thing.load(ä, safe=True)\n".encode(),
        ),
        (b"import thing\rthing.load(a)\r", b"import thing\rthing.load(a, safe=True)\r"),
        (b"import thing\nthing.load(a)\r\nx = 1\n", b"import thing\nthing.load(a, safe=True)\r\nx = 1\n"),
        (
            b"import thing\nthing.load(\n    thing.load(a)\n)\n",
            b"import thing\nthing.load(\n    thing.load(a, safe=True)\n, safe=True)\n",
        ),
    ],
)
def test_only_the_edit_changes(here: Path, checks: object, before: bytes, after: bytes | None) -> None:
    Path("a.py").write_bytes(before)
    one = mended("a.py")
    assert one.new == (before if after is None else after)
    assert mended_again(one.new) == one.new


def mended_again(data: bytes) -> bytes:
    Path("b.py").write_bytes(data)
    return mended("b.py").new


CELLS = {
    "cells": [
        {"cell_type": "markdown", "source": ["# T\u00e4st"]},
        {"cell_type": "code", "source": ["import thing\n", "%time thing.load(a)\n", "thing.load('\u00e4')"]},
        {"cell_type": "code", "source": "thing.load(b)\nx = 1"},
        {"cell_type": "code", "source": []},
    ],
    "metadata": {"z": 1, "a": [1.50, 2e5]},
    "nbformat": 4,
}


@pytest.mark.parametrize("indent", [1, 4, None])
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("end", ["", "\n"])
def test_notebooks_keep_their_layout(here: Path, checks: object, indent: int | None, escaped: bool, end: str) -> None:
    text = json.dumps(CELLS, indent=indent, ensure_ascii=escaped) + end
    Path("n.ipynb").write_text(text, encoding="utf-8")
    new = mended("n.ipynb").new.decode()
    expected = text.replace('")"', "").replace("')\"", "', safe=True)\"").replace("load(b)", "load(b, safe=True)")
    assert new == expected
    assert [line for line in diff(mended("n.ipynb")) if line[:3] in ("---", "+++")] == [
        "--- n.ipynb:cell 2",
        "+++ n.ipynb:cell 2",
        "--- n.ipynb:cell 3",
        "+++ n.ipynb:cell 3",
    ]


def test_a_cell_grows_and_shrinks() -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "source": ["a\n", "b"]}]}, indent=1)
    source = sources(text)[0]
    assert json.loads(replaced(text, source, "a\nb\nc"))["cells"][0]["source"] == ["a\n", "b\n", "c"]
    assert json.loads(replaced(text, source, ""))["cells"][0]["source"] == []
    assert replaced(text, source, "a\nb") == text
    with pytest.raises(ValueError, match="no cells"):
        sources("{}")


def test_edits_that_cannot_be_made() -> None:
    for edit in (Edit(9, 0, 9, 0, "x"), Edit(1, 9, 1, 9, "x"), Edit(1, 1, 1, 1, "x")):
        with pytest.raises(CannotEdit):
            edited("ä\n".encode(), ".py", [edit])
    with pytest.raises(CannotEdit, match="cannot be written in"):
        edited(b"# coding: ascii\nx\n", ".py", [Edit(2, 0, 2, 0, "ä")])
    with pytest.raises(CannotEdit, match="overlap"):
        edited(b"abc\n", ".py", [Edit(1, 0, 1, 2, "x"), Edit(1, 1, 1, 3, "y")])


def test_of_edits_that_overlap_the_first_is_made() -> None:
    def fix(*span: int) -> Fix:
        return Fix((Edit(*span, "x"),), True, "")

    fixes = [fix(1, 0, 1, 4), fix(1, 3, 1, 5), fix(1, 4, 1, 6), fix(2, 0, 2, 0), fix(2, 0, 2, 0), fix(1, 6, 1, 6)]
    assert apart(fixes) == [0, 2, 3]


def _check(rule: str, put: str, at: int = 0) -> SimpleNamespace:
    """Finds every `thing.load`, and puts a text before its line."""

    def check(facts: Facts) -> Iterator[Hit]:
        for call in facts.module.called("thing.load"):
            line = call.node.lineno
            fix = Fix((Edit(line, at, line, at, put),), True, "")
            yield Hit(Site(facts.module.path, line, 0), "bad", "mend it", fix=fix)

    return SimpleNamespace(RULE=rule, CALLS=frozenset(), check=check)


def test_what_breaks_the_file_is_dropped_and_said(here: Path, checks: list[SimpleNamespace]) -> None:
    checks.append(_check("test-both", "((("))
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    one = mended("a.py")
    assert one.new == b"import thing\nthing.load(a, safe=True)\n"
    assert one.refused == ["a.py:2: the fix of test-both was left out: the file would not parse"]
    assert dict(one.made) == {"test-load": 1}


def test_what_does_not_help_is_taken_back(here: Path, checks: list[SimpleNamespace]) -> None:
    checks.append(_check("test-both", "x = 1\n"))
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    one = mended("a.py")
    assert one.new == b"import thing\nthing.load(a, safe=True)\n"
    assert one.refused == ["a.py: the fix of test-both does not mend it and was taken back"]


def test_a_notebook_with_a_broken_cell_is_mended_elsewhere(here: Path, checks: object) -> None:
    cells = [{"cell_type": "code", "source": "def f(:"}, {"cell_type": "code", "source": "import thing\nthing.load(a)"}]
    Path("n.ipynb").write_text(json.dumps({"cells": cells}))
    assert json.loads(mended("n.ipynb").new)["cells"][1]["source"] == "import thing\nthing.load(a, safe=True)"


def test_writing_keeps_mode_and_follows_links(here: Path) -> None:
    Path("real").mkdir()
    real = Path("real/a.py")
    real.write_bytes(b"old")
    real.chmod(0o750)
    Path("a.py").symlink_to("real/a.py")
    write(Mended("a.py", b"old", b"new"))
    assert Path("a.py").is_symlink() and real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert [p.name for p in Path("real").iterdir()] == ["a.py"]
    with pytest.raises(OSError, match="changed meanwhile"):
        write(Mended("a.py", b"old", b"newer"))


def test_diff_of_a_file_without_a_last_newline() -> None:
    lines = list(diff(Mended("a.py", b"a\r\nb", b"a\r\nc")))
    assert lines == ["--- a.py", "+++ a.py", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]
