from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import NotChecked, Report, Series
from osler.records import store
from osler.records.store import MIGRATIONS, Store, StoreError


def report(run: str, *findings: Finding, **subject: object) -> Report:
    return Report(
        subject={"run": run, "command": ["python", "train.py"], "exit_code": 0, "started": 5.0, **subject},
        findings=list(findings),
        overhead={"ratio": 1.25},
        series=[Series("loss", "curve", [0, 1], [1.0, 2.0])],
        not_checked=[NotChecked("x", "y")],
    )


def columns(path: Path, table: str) -> list[str]:
    db = sqlite3.connect(path)
    try:
        return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    finally:
        db.close()


def test_a_run_comes_back(tmp_path: Path, finding: Callable[..., Finding]) -> None:
    path = tmp_path / "osler.db"
    possible = finding(line=5, confidence=Confidence.POSSIBLE)
    with Store(path) as db:
        db.put(report("b", finding(), finding(line=3, severity=Severity.INFO), possible), "s1")
        db.put(report("a", exit_code=None, steps=10**30, cwd="/x\udcff\ud800"), "")
        assert db.signatures() == {"a": "", "b": "s1"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Store(path) as db:
        a, b = db.runs()
    assert (b.id, b.command, b.exit_code, b.started, b.overhead) == ("b", "python train.py", 0, 5.0, 1.25)
    assert (b.errors, b.warnings, b.infos) == (1, 0, 1)
    assert (a.exit_code, a.steps, a.errors) == (None, 2**63 - 1, 0)


def test_storing_again_replaces(tmp_path: Path, finding: Callable[..., Finding]) -> None:
    with Store(tmp_path / "osler.db") as db:
        for _ in range(3):
            db.put(report("a", finding(), finding(line=3)), "s")
        db.put(report("a", finding()), "t")
        counts = [db._db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in sorted(store._TABLES)]
        assert counts == [1, 1, 1, 1]
        db.forget(["a", "unknown"])
        counts = [db._db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in sorted(store._TABLES)]
        assert counts == [0, 0, 0, 0]


def test_it_is_in_wal_mode(tmp_path: Path) -> None:
    with Store(tmp_path / "osler.db") as db:
        assert db._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_an_older_file_is_brought_up_to_date(tmp_path: Path, finding: Callable[..., Finding]) -> None:
    path = tmp_path / "osler.db"
    old = sqlite3.connect(path)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    old.execute("PRAGMA user_version = 1")
    old.execute("INSERT INTO runs VALUES ('old', 1.0, 2.0, 'python old.py', '/', 3, 4, '{}', '{}', 'as it was', 9.0)")
    old.execute("INSERT INTO findings VALUES ('old', 1, 'nonfinite-op', 3, 3, 'a.py', 1, NULL, 0, 1, '{}')")
    old.commit()
    old.close()
    assert "overhead" not in columns(path, "runs")
    with Store(path) as db:
        assert db.said == []
        assert db._db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        (row,) = db.runs()
        assert (row.id, row.command, row.exit_code, row.errors, row.overhead) == ("old", "python old.py", 3, 1, None)
        assert db.signatures() == {"old": ""}  # to be taken in again, for the new column
        db.put(report("new", finding()), "s")
    assert "overhead" in columns(path, "runs")
    new = tmp_path / "new.db"
    Store(new).close()
    for table in store._TABLES:
        assert columns(path, table) == columns(new, table)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "osler.db"
    Store(path).close()
    broken = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN extra TEXT", "no SQL"))
    monkeypatch.setattr(store, "MIGRATIONS", broken)
    with pytest.raises(sqlite3.OperationalError):
        Store(path)
    assert "extra" not in columns(path, "runs")
    monkeypatch.undo()
    Store(path).close()


def test_a_newer_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "osler.db"
    Store(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer osler \(format 99, this one knows 2\): update osler"):
        Store(path)
    assert path.read_bytes() == before


def _no_database(path: Path) -> None:
    path.write_bytes(b"this is a letter, not a database\n" * 400)


def _cut(path: Path) -> None:
    with path.open("r+b") as f:
        f.seek(100)
        f.write(b"\xff" * 8000)


def _empty_tables(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE runs (id)")
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.commit()
    db.close()


def _negative(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = -3")
    db.close()


@pytest.mark.parametrize("harm", [_no_database, _cut, _empty_tables, _negative])
def test_a_damaged_file_is_moved_aside(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "osler.db"
    with Store(path) as db:
        db.put(report("a"), "s")
    for _ in range(2):  # twice within a second: the second must not write over the first
        harm(path)
        with Store(path) as db:
            (said,) = db.said
            assert said.startswith(f"osler: {path} was damaged; it is now osler.db.corrupt-")
            assert db.runs() == []
            db.put(report("b"), "s")
    assert len([p for p in tmp_path.iterdir() if ".corrupt-" in p.name and p.name[-4:] not in ("-wal", "-shm")]) == 2


def test_several_writers_at_once(tmp_path: Path, finding: Callable[..., Finding]) -> None:
    path = tmp_path / "osler.db"
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for i in range(20):
                with Store(path) as db:
                    db.put(report(f"{name}{i}", finding()), "s")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in "abcd"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    with Store(path) as db:
        assert len(db.runs()) == 80
