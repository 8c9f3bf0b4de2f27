"""`osler runs`: the runs that are kept, as data; printing is the command line's job."""

from __future__ import annotations

import math
import sqlite3
import sys
from dataclasses import dataclass
from pathlib import Path

from osler.app.errors import UserError
from osler.app.report import find, load
from osler.core.finding import Severity
from osler.core.report import Report
from osler.core.settings import Records
from osler.records import parse
from osler.records.assemble import assemble
from osler.records.folder import Home, Pruned, is_live, prune, size
from osler.records.ingest import catch_up
from osler.records.store import RunRow, Store, StoreError


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in the list.

    Attributes:
        id: its name.
        path: its folder.
        live: it still goes on.
        started: seconds since 1970; None where it is not known.
        seconds: how long it took.
        command: on one line.
        exit_code: None while it goes on, and where its parent was killed.
        steps: optimizer steps watched.
        overhead: time watched over time bare.
        errors, warnings, infos: how many findings; those of confidence `possible` are not counted.
    """

    id: str
    path: Path
    live: bool
    started: float | None
    seconds: float | None
    command: str
    exit_code: int | None
    steps: int | None
    overhead: float | None
    errors: int
    warnings: int
    infos: int


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run whole: its line in the list, its report, its files (relative to its folder, with sizes in bytes)."""

    summary: RunSummary
    report: Report
    files: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class RunList:
    """The runs, the latest first, and the lines to say (runs taken in late, a database that was damaged)."""

    runs: list[RunSummary]
    said: list[str]


def list_runs(cwd: Path) -> RunList:
    """The runs kept in the `.osler/` of `cwd` or the nearest folder above; none where there is no such folder.

    Runs that were cut short are taken in first. Where the database cannot be used, the runs are read one by one.
    """
    home = Home.find(cwd)
    if home is None:
        return RunList([], [])
    said = catch_up(home)
    rows: dict[str, RunRow] = {}
    try:
        with Store(home.database) as store:
            rows = {row.id: row for row in store.runs()}
    except (OSError, sqlite3.Error, StoreError):
        pass  # `catch_up` has said so
    out = []
    for run in reversed(home.ids()):
        run_dir = home.runs / run
        live = is_live(run_dir)
        row = rows.get(run)
        if live or row is None:
            out.append(_summary(run_dir, assemble(run_dir), live))
        else:
            out.append(_from_row(run_dir, row))
    return RunList(out, said)


def show_run(run: str | None, cwd: Path) -> RunDetails:
    """A run whole; see `osler.app.report.find` for the arguments.

    Raises:
        UserError: there is no such run.
    """
    run_dir = find(run, cwd)
    report = load(run, cwd)
    files = [
        (str(path.relative_to(run_dir)), path.lstat().st_size)
        for path in sorted(run_dir.rglob("*"))
        if path.is_symlink() or path.is_file()
    ]
    return RunDetails(_summary(run_dir, report, is_live(run_dir)), report, files)


def prune_runs(
    cwd: Path,
    keep_runs: int | None = None,
    keep_days: float | None = None,
    max_mb: float | None = None,
    dry_run: bool = False,
    defaults: Records | None = None,
) -> list[Pruned]:
    """Throw away old runs, never one that still goes on; see `osler.records.folder.prune`.

    Args:
        cwd: where `.osler/` is looked for, there and in the folders above.
        keep_runs, keep_days, max_mb: the limits; with at least one given the others set no limit.
        dry_run: only say what would go.
        defaults: the limits where none is given.

    Raises:
        UserError: a limit is negative, or there is no `.osler/`.
    """
    home = Home.find(cwd)
    if home is None:
        raise UserError(f"there is no .osler/ in {cwd} or above it: nothing to prune")
    for name, limit in (("keep_runs", keep_runs), ("keep_days", keep_days), ("max_mb", max_mb)):
        if limit is not None and not limit >= 0:
            raise UserError(f"{name} is {limit}: it cannot be negative")
    if keep_runs is None and keep_days is None and max_mb is None:
        limits = defaults or Records()
        keep_runs, keep_days, max_mb = limits.keep_runs, limits.keep_days, limits.max_mb
    gone = prune(
        home,
        sys.maxsize if keep_runs is None else keep_runs,
        math.inf if keep_days is None else keep_days,
        math.inf if max_mb is None else max_mb,
        dry_run,
    )
    if gone and not dry_run:
        catch_up(home)  # the database forgets them too
    return gone


def kept(cwd: Path) -> int:
    """Bytes that the `.osler/` of `cwd` or the nearest folder above takes on disk."""
    home = Home.find(cwd)
    return 0 if home is None else size(home.path)


def _from_row(run_dir: Path, row: RunRow) -> RunSummary:
    return RunSummary(
        id=row.id,
        path=run_dir,
        live=False,
        started=row.started,
        seconds=row.seconds,
        command=row.command,
        exit_code=row.exit_code,
        steps=row.steps,
        overhead=row.overhead,
        errors=row.errors,
        warnings=row.warnings,
        infos=row.infos,
    )


def _summary(run_dir: Path, report: Report, live: bool) -> RunSummary:
    subject = report.subject
    command = subject.get("command")
    by = [f.severity for f in report.at_least(Severity.INFO)]
    return RunSummary(
        id=run_dir.name,
        path=run_dir,
        live=live,
        started=parse.real(subject.get("started")),
        seconds=parse.real(subject.get("seconds")),
        command=" ".join(map(str, command)) if isinstance(command, list) else parse.text(command) or "",
        exit_code=parse.whole(subject.get("exit_code")),
        steps=parse.whole(subject.get("steps")),
        overhead=parse.real(report.overhead.get("ratio")),
        errors=by.count(Severity.ERROR),
        warnings=by.count(Severity.WARNING),
        infos=by.count(Severity.INFO),
    )
