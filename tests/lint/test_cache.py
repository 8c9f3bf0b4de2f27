"""What is kept holds exactly as long as nothing that it came from has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from osler.lint.cache import Cache, place
from osler.lint.session import Outcome, lint


@pytest.fixture
def folder(here: Path, checks: object) -> Path:
    out = here / ".osler" / "lint-cache"
    out.mkdir()
    return out


def run(folder: Path, *files: str) -> Outcome:
    return lint(files, cache=Cache.load(folder, "key"))


def old(*files: str) -> None:
    """Written well before now: the clock's tick is over."""
    for file in files:
        os.utime(file, ns=(10**18, 10**18))


def test_unchanged_files_are_not_looked_at_again(folder: Path) -> None:
    Path("a.py").write_text("import thing\nthing.load(ä)  # osler: ignore[test-both]\n")
    Path("b.py").write_text("def f(:\n")
    old("a.py", "b.py")
    first = run(folder, "a.py", "b.py")
    again = run(folder, "a.py", "b.py")
    assert (first.fresh, again.fresh) == (2, 0)
    assert again.results == first.results
    assert [n.to_dict() for n in again.noted()] == [n.to_dict() for n in first.noted()]
    assert again.troubles()[0][1].line == 1


def test_size_and_content_and_time(folder: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    old("a.py")
    run(folder, "a.py")
    os.utime("a.py")  # only the time: the bytes are compared
    assert run(folder, "a.py").fresh == 0
    Path("a.py").write_text("x = 2\n")
    old("a.py")  # the same size, and the time of before: what a tool like rsync -t can do; nobody can see that
    os.utime("a.py", ns=(10**18 + 1, 10**18 + 1))
    assert run(folder, "a.py").fresh == 1
    Path("a.py").write_text("x = 22\n")
    assert run(folder, "a.py").fresh == 1
    Path("a.py").write_text("x = 33\n")  # within the clock's tick, the same size
    assert run(folder, "a.py").fresh == 1


def test_what_facts_came_from(folder: Path, checks: list[SimpleNamespace]) -> None:
    def everything(facts):  # type: ignore[no-untyped-def]
        list(facts.events(".step"))
        return iter(())

    checks.append(SimpleNamespace(RULE="test-both", CALLS=frozenset(), check=everything))
    Path("a.py").write_text("from helper import train\nimport b\ntrain(1)\n")
    Path("helper.py").write_text("from deep import make\ndef train(x):\n    make(x).step()\n")
    Path("deep.py").write_text("def make(x):\n    return x\n")
    Path("b.py").write_text("x = 1\n")
    Path("other.py").write_text("x = 1\n")
    files = ["a.py", "b.py", "helper.py", "deep.py", "other.py"]
    old(*files)
    first = run(folder, *files)
    assert {"helper.py", "deep.py"} <= set(first.results["a.py"].used)
    assert run(folder, *files).fresh == 0
    Path("deep.py").write_text("def make(x):\n    return x.y\n")
    changed = run(folder, *files)
    assert changed.fresh == 3  # deep, helper, a
    assert run(folder, *files).fresh == 0
    # In between only another file is looked at: what depends on the changed one must still not be trusted.
    Path("deep.py").write_text("def make(x):\n    return x.z.y\n")
    run(folder, "deep.py")
    assert run(folder, *files).fresh == 2


def test_a_file_that_appears(folder: Path) -> None:
    Path("a.py").write_text("import helper\nimport os\n")
    Path("b.py").write_text("import os\n")
    run(folder, "a.py", "b.py")
    assert run(folder, "a.py", "b.py").fresh == 0
    Path("helper.py").write_text("x = 1\n")
    assert run(folder, "a.py", "b.py", "helper.py").fresh == 2
    assert run(folder, "a.py", "b.py", "helper.py").fresh == 0


@pytest.mark.parametrize(
    "junk", ["", "{", "[]", '{"form": 1}', "\x00" * 10, '{"form": 1, "entries": [1], "stamps": {}}']
)
def test_a_broken_cache_is_made_anew(folder: Path, junk: str) -> None:
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    run(folder, "a.py")
    (file,) = folder.iterdir()
    file.write_text(junk)
    assert len(run(folder, "a.py").noted()) == 1
    assert run(folder, "a.py").fresh == 0


def test_broken_entries_are_looked_at_again(folder: Path) -> None:
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    run(folder, "a.py")
    (file,) = folder.iterdir()
    data = json.loads(file.read_text())
    data["entries"][0]["noted"] = [{"finding": 3}]
    file.write_text(json.dumps(data))
    assert run(folder, "a.py").fresh == 1


def test_nothing_half_written_and_old_ones_go(folder: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    for key in range(30):
        lint(["a.py"], cache=Cache.load(folder, key))
    assert len(list(folder.iterdir())) <= 13
    assert not list(folder.glob(".new*"))


def test_files_that_are_gone_are_forgotten(folder: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    Path("b.py").write_text("x = 1\n")
    run(folder, "a.py", "b.py")
    Path("b.py").unlink()
    Path("a.py").write_text("x = 12\n")
    run(folder, "a.py")
    (file,) = folder.iterdir()
    assert "b.py" not in file.read_text()


def test_where_it_lies(here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert place(here) == here / ".osler" / "lint-cache"
    (here / "sub").mkdir()
    assert place(here / "sub") == here / ".osler" / "lint-cache"
    bare = tmp_path_factory.mktemp("bare")
    assert place(bare) == bare / ".osler" / "lint-cache"
    assert (bare / ".osler" / ".gitignore").read_text() == "*\n"
    shut = tmp_path_factory.mktemp("shut")
    (shut / ".osler").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(shut / "cache"))
    assert place(shut) == shut / "cache" / "osler" / "lint-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(shut / ".osler"))
    assert place(shut) is None
