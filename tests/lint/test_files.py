"""Which files are meant by a path."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from osler.core.settings.lint import EXCLUDED
from osler.lint.files import Excludes, NoSuchPath, discover

USUAL = Excludes(tuple(EXCLUDED))


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def git(root: Path, *words: str) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, env=environ)


def test_a_folder_is_walked_and_what_is_no_source_left_out(here: Path) -> None:
    write(here, "b.py", "a/x.py", "a/y.ipynb", "a/z.pyi", "notes.txt", ".venv/lib/m.py", "node_modules/n.py")
    write(here, "build/c.py", "pkg/__pycache__/d.py", "venv/e.py", "lib/site-packages/f.py")
    assert discover(["."], USUAL).files == ["a/x.py", "a/y.ipynb", "b.py"]


def test_what_is_named_is_read_whatever_is_excluded(here: Path) -> None:
    write(here, "build/c.py", "lib/site-packages/pkg/f.py", "notes.txt")
    assert discover(["build/c.py", "lib/site-packages"], USUAL).files == ["build/c.py", "lib/site-packages/pkg/f.py"]
    assert discover(["notes.txt"], USUAL).files == ["notes.txt"]
    forced = Excludes(tuple(EXCLUDED), named=True)
    write(here, "a_generated.py")
    assert discover(["a_generated.py"], Excludes(("*_generated.py",), named=True)).files == []
    assert discover(["notes.txt"], forced).files == ["notes.txt"]


@pytest.mark.parametrize(
    ("glob", "left"),
    [
        ("gen", ["a/x.py", "b.py"]),
        ("*.gen.py", ["a/gen/y.py", "a/x.py"]),
        ("a/*", ["b.py"]),
        ("**/gen", ["a/x.py", "b.py"]),
        ("a/gen/", ["a/x.py", "b.py"]),
        ("b.py", ["a/gen/y.py", "a/x.py"]),
    ],
)
def test_globs(here: Path, glob: str, left: list[str]) -> None:
    write(here, "a/x.py", "a/gen/y.py", "b.py" if "gen.py" not in glob else "b.gen.py")
    assert discover(["."], Excludes((glob,))).files == left


def test_each_file_once_under_the_first_name(here: Path) -> None:
    write(here, "a.py")
    (here / "link.py").symlink_to("a.py")
    assert len(discover(["a.py", ".", "./a.py", str(here / "a.py")], USUAL).files) == 1
    assert len(discover(["."], USUAL).files) == 1


def test_git_ignores(here: Path) -> None:
    git(here, "init", "-q")
    write(here, "a.py", "out/b.py", "gone.py", "sub/c.py", "sub/secret.py", "out/keep/d.py", "kept.py")
    (here / ".gitignore").write_text("out/\nkept.py\n")
    (here / "sub/.gitignore").write_text("secret.py\n")
    git(here, "add", "a.py", "gone.py")
    git(here, "add", "-f", "kept.py")
    (here / "gone.py").unlink()
    assert discover(["."], USUAL).files == ["a.py", "kept.py", "sub/c.py"]
    assert discover(["sub"], USUAL).files == ["sub/c.py"]
    # Named, although git ignores it.
    assert discover(["out"], USUAL).files == ["out/b.py", "out/keep/d.py"]
    assert "out/b.py" in discover(["."], Excludes(tuple(EXCLUDED), gitignore=False)).files


def test_repositories_inside_a_repository(here: Path) -> None:
    git(here, "init", "-q")
    write(here, "a.py", "inner/b.py", "inner/out/c.py", "inner/build/d.py")
    git(here / "inner", "init", "-q")
    (here / "inner/.gitignore").write_text("out\n")
    assert discover(["."], USUAL).files == ["a.py", "inner/b.py"]


def test_without_git_folders_are_walked(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(here, "init", "-q")
    write(here, "a.py", "build/b.py")
    monkeypatch.setenv("PATH", "")
    assert discover(["."], USUAL).files == ["a.py"]


def test_a_repository_cannot_start_a_program(here: Path) -> None:
    git(here, "init", "-q")
    write(here, "a.py")
    hook = here / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {here}/started\n")
    hook.chmod(0o755)
    git(here, "config", "core.fsmonitor", str(hook))
    discover(["."], USUAL)
    assert not (here / "started").exists()


def test_odd_things(here: Path) -> None:
    write(here, "dir.py/inner.py", "with space.py", "with\nnewline.py")
    Path(os.fsdecode(os.fsencode(str(here)) + b"/b\xe4d.py")).write_text("")
    (here / "broken.py").symlink_to("nowhere")
    (here / "loop").symlink_to(".")
    os.mkfifo(here / "pipe.py")
    found = discover(["."], USUAL)
    assert found.files == sorted(["b\udce4d.py", "dir.py/inner.py", "with\nnewline.py", "with space.py"])
    assert found.troubles == [("broken.py", "is a link that leads nowhere")]
    assert discover(["pipe.py"], USUAL).troubles[0][1].startswith("is no file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(here: Path) -> None:
    write(here, "shut/a.py", "b.py")
    (here / "shut").chmod(0)
    found = discover(["."], USUAL)
    (here / "shut").chmod(0o755)
    assert found.files == ["b.py"]
    assert found.troubles == [("shut", "cannot be read: Permission denied")]


def test_what_does_not_exist(here: Path) -> None:
    with pytest.raises(NoSuchPath, match=r"there is no file or folder train\.pyy"):
        discover(["train.pyy"], USUAL)
    (here / "broken").symlink_to("nowhere")
    with pytest.raises(NoSuchPath, match="a link that leads nowhere"):
        discover(["broken"], USUAL)
