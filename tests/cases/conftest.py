"""Fixtures: an empty casebook, writers of cases and healthy scripts, the stand-in for `osler run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .fakes import FAKE_OSLER, REPRO, TOML, a_finding, report_of


@pytest.fixture
def fake_osler(tmp_path: Path) -> tuple[str, ...]:
    """The command that stands for `osler run`."""
    path = tmp_path / "fake_osler.py"
    path.write_text(FAKE_OSLER)
    return (sys.executable, str(path))


@pytest.fixture
def casebook(tmp_path: Path) -> Path:
    """An empty casebook."""
    root = tmp_path / "casebook"
    root.mkdir()
    return root


@pytest.fixture
def make_case(casebook: Path) -> Callable[..., Path]:
    """A function that writes a case folder and gives its path; the defaults make a case that passes."""

    def make(
        id: str = "a-case",
        *,
        faulty: dict[str, object] | None = None,
        clean: dict[str, object] | None = None,
        repro: str = REPRO,
        toml: str = "",
        exit_code: int = 0,
        place: str = "",
        also: str = "",
    ) -> Path:
        folder = casebook / id
        folder.mkdir()
        (folder / "repro.py").write_text(repro)
        (folder / "case.toml").write_text(toml or TOML.format(id=id, exit_code=exit_code, place=place, also=also))
        (folder / "report--faulty.json").write_text(json.dumps(report_of(a_finding()) if faulty is None else faulty))
        (folder / "report--clean.json").write_text(json.dumps(report_of() if clean is None else clean))
        return folder

    return make


@pytest.fixture
def make_healthy(casebook: Path) -> Callable[..., Path]:
    """A function that writes `_healthy` with one script and gives the folder's path."""

    def make(report: dict[str, object] | None = None, *, script: str = "print('fine')\n", steps: int = 10) -> Path:
        folder = casebook / "_healthy"
        folder.mkdir()
        (folder / "fine.py").write_text(script)
        (folder / "healthy.toml").write_text(
            f'[[script]]\nid = "fine"\nfile = "fine.py"\ntitle = "A fine script"\ncost_s = 1\nneeds = []\n'
            f'traps = ["none"]\nsteps = {steps}\n'
        )
        (folder / "report.json").write_text(json.dumps(report_of() if report is None else report))
        return folder

    return make
