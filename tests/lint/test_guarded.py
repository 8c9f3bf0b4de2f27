"""A source that hangs hangs nobody but the process that looks at it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.core.settings.lint import Lint
from osler.lint import guarded
from osler.lint.guarded import Guarded
from osler.lint.linter import Linter
from osler.lint.plan import Plan

LOAD = b"import torch\nstate = torch.load('a.pt', weights_only=False)\n"
# In the process: a file of these names never ends, without working or dying.
HOOK = """import os, time, osler.lint.linter as l
old = l.Linter.lint
def lint(self, path):
    if path == "asleep.py":
        time.sleep(1000)
    if path == "dead.py":
        os._exit(9)
    return old(self, path)
l.Linter.lint = lint
"""


@pytest.fixture
def bench(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    Path("site").mkdir()
    Path("site/sitecustomize.py").write_text(HOOK)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here / "site"), *filter(None, sys.path)]))
    one = Guarded(Plan(settings=Lint(seconds=0.1)))
    yield one
    one.close()


def test_it_finds_what_is_found_here(here: Path) -> None:
    Path("helper.py").write_text("x = 1\n")
    bench = Guarded(Plan((2, 6)))
    data = LOAD + "import helper\nä = 'ü'\n".encode()
    first, again = bench.lint("a.py", data), bench.lint("a.py", data)
    bench.close()
    linter = Linter(Plan((2, 6)))
    linter.give("a.py", data)
    assert first.to_dict() == again.to_dict() == linter.lint("a.py").to_dict()
    assert [n.finding.rule for n in first.noted] == ["unsafe-load"]


def test_work_beyond_the_cap_is_given_up_and_the_process_kept(bench: Guarded) -> None:
    result = bench.lint("a.py", b"x = [1, 2, 3]\n" * 20_000)
    assert [t.message for t in result.troubles] == ["took longer than 0.1 s of work and was given up"]
    process = bench._process
    assert bench.lint("b.py", b"x = 1\n").read and bench._process is process


def test_what_sleeps_is_ended_by_the_clock(bench: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.lint("b.py", b"x = 1\n")
    monkeypatch.setattr(guarded, "GRACE_S", 0.3)
    begun = time.monotonic()
    result = bench.lint("asleep.py", b"x = 1\n")
    assert [t.message for t in result.troubles] == ["took longer than 0.5 s and was given up"]
    assert time.monotonic() - begun < 20
    monkeypatch.undo()
    assert bench.lint("b.py", b"x = 1\n").read


def test_a_death_is_told(bench: Guarded) -> None:
    (trouble,) = bench.lint("dead.py", b"x = 1\n").troubles
    assert trouble.ours and "(exit code 9)" in trouble.message
    assert bench.lint("b.py", b"x = 1\n").read


def test_closing_ends_what_goes_on(bench: Guarded) -> None:
    threading.Timer(0.5, bench.close).start()
    (trouble,) = bench.lint("asleep.py", b"x = 1\n").troubles
    assert trouble.message == "was not looked at any more" and not trouble.ours
