"""`.osler/osler.db`: runs, findings, what was not checked, and the index of series, in SQLite.

Everything in it comes from the runs' folders and can be made again from them.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from osler.core.finding import Confidence
from osler.core.jsonable import dumps
from osler.core.report import Report
from osler.records import parse

# One entry a version; the version of a file is its `user_version`. Entries are never changed, only added.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            id TEXT PRIMARY KEY, started REAL, seconds REAL, command TEXT, cwd TEXT, exit_code INTEGER, steps INTEGER,
            subject TEXT NOT NULL, environment TEXT NOT NULL, signature TEXT NOT NULL, ingested REAL NOT NULL)""",
        """CREATE TABLE findings (
            run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, n INTEGER NOT NULL, rule TEXT NOT NULL,
            severity INTEGER NOT NULL, confidence INTEGER NOT NULL, file TEXT, line INTEGER, rank INTEGER,
            first_step INTEGER, count INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (run, n))""",
        """CREATE TABLE not_checked (
            run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, what TEXT NOT NULL, why TEXT NOT NULL)""",
        """CREATE TABLE series (
            run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT NOT NULL, kind TEXT NOT NULL,
            source TEXT NOT NULL, length INTEGER NOT NULL)""",
    ),
    (
        "ALTER TABLE runs ADD COLUMN overhead REAL",
        "CREATE INDEX findings_by_rule ON findings(rule, run)",
        "CREATE INDEX not_checked_by_run ON not_checked(run)",
        "CREATE INDEX series_by_run ON series(run)",
        "UPDATE runs SET signature = ''",  # taken in again, which fills the new column
    ),
)
_TABLES = {"runs", "findings", "not_checked", "series"}


class StoreError(Exception):
    """The database cannot be used; the message is one sentence that names it, and the fix."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the database. `overhead` is the ratio; findings of confidence `possible` are not counted."""

    id: str
    started: float | None
    seconds: float | None
    command: str
    exit_code: int | None
    steps: int | None
    overhead: float | None
    errors: int
    warnings: int
    infos: int


class Store:
    """The database of one `.osler/`. Several processes may use it at once.

    Opening it brings an older file up to date. A file that is no database or is damaged is moved aside, and `said`
    holds the line that says so; the runs come back with `osler.records.ingest.catch_up`.

    Args:
        path: the SQLite file; it is made when it is not there.

    Raises:
        StoreError: a newer osler wrote it.
        OSError, sqlite3.OperationalError: it cannot be opened or written (permissions, a full or read-only disk).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[str] = []
        with locked(path.parent):
            try:
                self._db = self._open()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.said.append(_move_aside(path))
                self._db = self._open()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        self._db.close()

    def _open(self) -> sqlite3.Connection:
        if not self.path.exists():
            self.path.touch(mode=0o600)
        db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = NORMAL")
            if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                db.execute("PRAGMA journal_mode = WAL")
            self._migrate(db)
        except BaseException:
            db.close()
            raise
        return db

    def _migrate(self, db: sqlite3.Connection) -> None:
        known = len(MIGRATIONS)
        if _version(db) < known:
            with _transaction(db):
                for version in range(_version(db), known):  # asked again: another process may have been faster
                    for statement in MIGRATIONS[version]:
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {version + 1}")
        version = _version(db)
        if version > known:
            raise StoreError(
                f"{self.path} was written by a newer osler (format {version}, this one knows {known}): update osler, "
                "or move the file away and it is made again from the runs"
            )
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables >= _TABLES:
            raise sqlite3.DatabaseError(f"tables are missing: {', '.join(sorted(_TABLES - tables))}")

    def put(self, report: Report, signature: str) -> None:
        """Store a run, in the place of what was stored of it before.

        Args:
            report: its report; `subject["run"]` is its id.
            signature: the state of its folder, see `signatures`.

        Raises:
            sqlite3.Error: the disk does not take it, or the file is damaged; nothing of it is stored then.
        """
        subject = report.subject
        run = _text(subject.get("run"))
        command = subject.get("command")
        exit_code, steps = parse.whole(subject.get("exit_code")), parse.whole(subject.get("steps"))
        with _transaction(self._db) as db:
            db.execute("DELETE FROM runs WHERE id = ?", (run,))
            db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run,
                    parse.real(subject.get("started")),
                    parse.real(subject.get("seconds")),
                    _text(" ".join(map(str, command)) if isinstance(command, (list, tuple)) else command or ""),
                    _text(subject.get("cwd") or ""),
                    exit_code,
                    steps,
                    dumps(subject),
                    dumps(report.environment),
                    signature,
                    time.time(),
                    parse.real(report.overhead.get("ratio")),
                ),
            )
            db.executemany(
                "INSERT INTO findings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        run,
                        n,
                        _text(f.rule),
                        int(f.severity),
                        int(f.confidence),
                        None if f.where.file is None else _text(f.where.file),
                        f.where.line,
                        f.where.rank,
                        f.first_step,
                        f.count,
                        dumps(f.to_dict()),
                    )
                    for n, f in enumerate(report.findings, 1)
                ],
            )
            db.executemany(
                "INSERT INTO not_checked VALUES (?, ?, ?)",
                [(run, _text(n.what), _text(n.why)) for n in report.not_checked],
            )
            db.executemany(
                "INSERT INTO series VALUES (?, ?, ?, ?, ?)",
                [(run, _text(s.name), s.kind, s.source, len(s.steps)) for s in report.series],
            )

    def forget(self, runs: Iterable[str]) -> None:
        """Take runs out, with all that belongs to them.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        with _transaction(self._db) as db:
            db.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in runs])

    def signatures(self) -> dict[str, str]:
        """For each run the state of its folder when it was stored; empty where it must be stored again."""
        return dict(self._db.execute("SELECT id, signature FROM runs"))

    def runs(self) -> list[RunRow]:
        """Every run, oldest first."""
        rows: Sequence[tuple[object, ...]] = self._db.execute(
            """SELECT r.id, r.started, r.seconds, r.command, r.exit_code, r.steps, r.overhead,
                count(f.n) FILTER (WHERE f.severity = 3), count(f.n) FILTER (WHERE f.severity = 2),
                count(f.n) FILTER (WHERE f.severity = 1)
            FROM runs r LEFT JOIN findings f ON f.run = r.id AND f.confidence >= ?
            GROUP BY r.id ORDER BY r.id""",
            (int(Confidence.PROBABLE),),
        ).fetchall()
        return [RunRow(*row) for row in rows]  # type: ignore[arg-type]


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken: for that (CORRUPT, NOTADB) sqlite3 raises the base class itself."""
    return type(error) is sqlite3.DatabaseError


def _move_aside(path: Path) -> str:
    """Rename a broken database, with its side files; returns the line to say."""
    stem = aside = f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
    n = 1
    while path.with_name(aside).exists():
        n += 1
        aside = f"{stem}-{n}"
    for suffix in ("-wal", "-shm", ""):  # the side files first: what is left of them would be played into the new file
        try:
            path.with_name(path.name + suffix).rename(path.with_name(aside + suffix))
        except FileNotFoundError:
            pass
    return f"osler: {path} was damaged; it is now {aside}, and a new one is made from the runs"


def _version(db: sqlite3.Connection) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version < 0:
        raise sqlite3.DatabaseError("no such version")
    return version


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, so that two processes do not tidy it at once. Some network disks know no locks."""
    fd = -1
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        pass
    try:
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _text(value: object) -> str:
    """As SQLite can store it: the user's paths may hold lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode()
