from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from osler.app.errors import UserError
from osler.app.runs import kept, list_runs, prune_runs, show_run
from osler.core.settings import Records
from osler.records.processes import start_ticks


def make(cwd: Path, name: str, **subject: object) -> Path:
    run_dir = cwd / ".osler" / "runs" / name
    run_dir.mkdir(parents=True)
    facts = {"command": ["python", "train.py"], "exit_code": 0, "started": 1.7e9, "seconds": 1.5, **subject}
    (run_dir / "subject.json").write_text(json.dumps(facts))
    code = """
import sys
from osler.core.finding import Confidence, Finding, Severity
from osler.records.journal import Journal
j = Journal(sys.argv[1])
j.points("loss", [0, 1], [1.0, 0.5])
j.overhead({"ratio": 1.02})
for severity in (Severity.ERROR, Severity.WARNING, Severity.WARNING):
    j.finding(Finding(f"rule-{severity.label}", severity, Confidence.DEFINITE, "m", evidence={}, touches=frozenset()))
j.finding(Finding("rule-x", Severity.ERROR, Confidence.POSSIBLE, "m"))
j.close(2)
"""
    subprocess.run([sys.executable, "-c", code, str(run_dir)], check=True, timeout=60)
    return run_dir


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cwd = tmp_path_factory.mktemp("cwd")
    make(cwd, "20250101-120000-00a1")
    return cwd


@pytest.fixture
def cwd(first: Path, tmp_path: Path) -> Path:
    """A working directory with one run of 1 January 2025 that ended."""
    subprocess.run(["cp", "-a", str(first / ".osler"), str(tmp_path)], check=True)
    return tmp_path


def live(cwd: Path, name: str) -> Path:
    run_dir = cwd / ".osler" / "runs" / name
    run_dir.mkdir()
    me = os.getpid()
    (run_dir / "subject.json").write_text(
        json.dumps({"parent_pid": me, "parent_start": start_ticks(me), "command": "x"})
    )
    return run_dir


def test_runs_are_listed_the_latest_first(cwd: Path) -> None:
    live(cwd, "20250102-120000-00a2")
    out = list_runs(cwd)
    assert out.said == []
    second, first = out.runs
    assert (second.id, second.live, second.exit_code, second.command) == ("20250102-120000-00a2", True, None, "x")
    assert (first.id, first.live, first.exit_code, first.command) == (
        "20250101-120000-00a1",
        False,
        0,
        "python train.py",
    )
    assert (first.started, first.seconds, first.steps, first.overhead) == (1.7e9, 1.5, 2, 1.02)
    assert (first.errors, first.warnings, first.infos) == (1, 1, 0)
    assert first.path == cwd / ".osler" / "runs" / first.id


def test_the_list_is_the_same_without_a_database(cwd: Path) -> None:
    with_database = list_runs(cwd).runs
    for path in (cwd / ".osler").glob("osler.db*"):
        path.unlink()
    (cwd / ".osler" / "osler.db").mkdir()
    out = list_runs(cwd)
    assert out.runs == with_database
    assert len(out.said) == 1


def test_a_database_of_a_newer_osler_is_said(cwd: Path) -> None:
    list_runs(cwd)
    db = sqlite3.connect(cwd / ".osler" / "osler.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    out = list_runs(cwd)
    assert len(out.runs) == 1
    assert "newer osler" in out.said[0]


def test_without_runs_the_list_is_empty(tmp_path: Path) -> None:
    assert list_runs(tmp_path).runs == []
    assert kept(tmp_path) == 0
    with pytest.raises(UserError, match="nothing to prune"):
        prune_runs(tmp_path)
    with pytest.raises(UserError, match="there is no"):
        show_run(None, tmp_path)


def test_a_run_is_shown_whole(cwd: Path) -> None:
    details = show_run("2025", cwd)
    assert details.summary == list_runs(cwd).runs[0]
    assert len(details.report.findings) == 3
    assert [name.split("-")[0] for name, _ in details.files] == ["journal", "series/curves", "subject.json"]
    assert dict(details.files)["subject.json"] == (details.summary.path / "subject.json").stat().st_size


def test_pruning_by_hand_and_by_default(cwd: Path) -> None:
    live(cwd, "20250102-120000-00a2")
    list_runs(cwd)
    assert [p.id for p in prune_runs(cwd, keep_runs=1, dry_run=True)] == ["20250101-120000-00a1"]
    assert prune_runs(cwd, keep_runs=5) == []
    assert prune_runs(cwd, max_mb=100) == []
    assert prune_runs(cwd, defaults=Records(keep_days=1e6)) == []
    before = kept(cwd)
    assert [p.id for p in prune_runs(cwd)] == ["20250101-120000-00a1"]  # ninety days have passed since
    assert kept(cwd) < before
    assert [r.id for r in list_runs(cwd).runs] == ["20250102-120000-00a2"]
    db = sqlite3.connect(cwd / ".osler" / "osler.db")
    assert db.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    db.close()
    for limit in (-1, float("nan")):
        with pytest.raises(UserError, match="keep_days is"):
            prune_runs(cwd, keep_days=limit)
