"""Many files: one order whatever did the work, and a process that dies takes one file with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from osler.lint.cache import Cache
from osler.lint.plan import Plan
from osler.lint.pool import Pool, groups
from osler.lint.result import FileResult
from osler.lint.session import Outcome, lint

LOOP = """import torch
from helper import step

net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in range({n}):
    loss = net(torch.ones(2)).sum()
    loss.backward()
    step(opt)
"""


def project(files: int) -> list[str]:
    Path("helper.py").write_text("def step(o):\n    o.step()\n")
    names = ["helper.py"]
    for n in range(files):
        Path(f"d{n % 5}").mkdir(exist_ok=True)
        Path(f"d{n % 5}/f{n}.py").write_text(LOOP.format(n=n) if n % 7 else "def f(:\n")
        Path(f"d{n % 5}/helper.py").write_text("def step(o):\n    o.step()\n")
        names.append(f"d{n % 5}/f{n}.py")
    return sorted(names)


def shape(outcome: Outcome) -> list[object]:
    return [r.to_dict() for r in outcome.results.values()]


def test_one_process_or_several_give_the_same(here: Path) -> None:
    files = project(70)
    alone = lint(files, jobs=1)
    together = lint(files, jobs=3)
    assert list(together.results) == files
    assert shape(together) == shape(alone)
    assert len(together.noted()) == 60
    assert [n.to_dict() for n in together.noted()] == [n.to_dict() for n in alone.noted()]


def test_two_runs_at_once_leave_a_whole_cache(here: Path) -> None:
    project(12)
    osler = Path(sys.executable).with_name("osler")
    runs = [
        subprocess.Popen([osler, "lint", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(3)
    ]
    assert {r.wait(100) for r in runs} == {1}
    done = subprocess.run([osler, "lint"], capture_output=True, text=True, check=False)
    assert "10 errors" in done.stdout or "10 warnings" in done.stdout


def test_a_process_that_dies_takes_one_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(8):
        Path(f"f{n}.py").write_text("x = 1\n")
    killer = "import os, osler.lint.linter as l\nold = l.Linter.lint\n"
    killer += "l.Linter.lint = lambda self, path: os._exit(9) if path == 'f3.py' else old(self, path)\n"
    Path("site").mkdir()
    Path("site/sitecustomize.py").write_text(killer)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here / "site"), *filter(None, sys.path)]))
    got: dict[str, FileResult] = {}
    Pool(Plan(), 2).lint([f"f{n}.py" for n in range(8)], lambda r: got.__setitem__(r.path, r))
    assert sorted(got) == [f"f{n}.py" for n in range(8)]
    assert [t.at(p) for p, r in got.items() for t in r.troubles] == [
        "osler failed on f3.py: the process that looked at it ended (exit code 9); please report it"
    ]


def test_without_processes_it_is_done_here(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = project(40)

    def none(*args: object, **kwargs: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", none)
    assert len(lint(files, jobs=2).results) == len(files)


def test_groups_keep_neighbours_together(here: Path) -> None:
    for n in range(70):
        Path(f"f{n:02}.py").write_bytes(b"#" * 30_000)
    files = [f"f{n:02}.py" for n in range(70)]
    pieces = groups(files)
    assert [f for p in pieces for f in p] == files
    assert max(map(len, pieces)) <= 32 and len(pieces) >= 5


def test_progress_is_told(here: Path) -> None:
    told: list[tuple[int, int | None]] = []
    lint(project(5), cache=Cache(None), progress=lambda what, done, total: told.append((done, total)))
    assert told == [(n, 6) for n in range(7)]
