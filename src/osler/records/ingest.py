"""Taking runs into the database and their arrays into Parquet. Doing it again, or dying half-way, does no harm."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from osler.core.runfolder import SUBJECT
from osler.records import pack
from osler.records.assemble import build
from osler.records.folder import Home, is_live, read_subject
from osler.records.read import Process, journals, read_run
from osler.records.store import Store, StoreError, is_damage, locked


def ingest(run_dir: Path) -> list[str]:
    """Take in one run, whether or not its parent still lives; processes that still run are packed another time.

    The order makes it safe to be killed anywhere: Parquet files under a temporary name, renamed; then the database, in
    one transaction; then the raw arrays go. Journals stay.

    Returns:
        The lines to say: nothing when all went well. It does not raise for what is wrong with the disk.
    """
    try:
        with Store(run_dir.parent.parent / "osler.db") as store:
            return store.said + _take_in(store, run_dir)
    except (OSError, sqlite3.Error, StoreError) as error:
        return [_sorry(run_dir, error)]


def catch_up(home: Home) -> list[str]:
    """Take in every run that is not in the database as it now is, and forget those whose folder is gone.

    A run that still goes on waits.

    Returns:
        The lines to say, as `ingest`.
    """
    ids = home.ids()
    if not ids and not home.database.exists():
        return []
    said: list[str] = []
    try:
        store = Store(home.database)
    except (OSError, sqlite3.Error, StoreError) as error:
        return [_unusable(home.database, error)]
    with store:
        said += store.said
        try:
            known = store.signatures()
            gone = [run for run in known if not (home.runs / run).is_dir()]
            if gone:
                store.forget(gone)
        except sqlite3.Error as error:
            return [*said, _unusable(home.database, error)]
        for run in ids:
            run_dir = home.runs / run
            if known.get(run) and known[run] == _signature(run_dir):
                continue
            if is_live(run_dir):
                continue
            try:
                said += _take_in(store, run_dir)
            except sqlite3.DatabaseError as error:
                if is_damage(error):  # `Store` moves it aside when it is opened the next time
                    return [*said, _unusable(home.database, error)]
                said.append(_sorry(run_dir, error))
            except OSError as error:
                said.append(_sorry(run_dir, error))
    return said


def _take_in(store: Store, run_dir: Path) -> list[str]:
    said: list[str] = []
    with locked(run_dir):
        signature = _signature(run_dir)
        processes = read_run(run_dir)
        ended = [p for p in processes if not p.alive]
        try:
            for process in ended:
                if not process.problem:
                    pack.pack(process)
        except OSError as error:
            signature = ""  # to be tried again
            said.append(f"osler: the heat maps of run {run_dir.name} stay unpacked ({error.strerror or error})")
        if len(ended) < len(processes):
            signature = ""
        store.put(build(run_dir, processes, read_subject(run_dir)), signature)
        for process in ended:
            if _safe_to_remove(process):
                process.arrays.unlink(missing_ok=True)
    return said


def _safe_to_remove(process: Process) -> bool:
    """Whether the packed file holds all of the raw one: the journal was read to its end, without a gap."""
    return not process.problem and not process.unread and pack.maps_file(process).exists()


def _signature(run_dir: Path) -> str:
    """The state of a run's folder: what a process adds to it, or the parent says of it, changes this."""
    parts = []
    for path in [run_dir / SUBJECT, *(path for path, _, _ in journals(run_dir))]:
        try:
            stat = path.stat()
            parts.append(f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}")
        except OSError:
            continue
    return " ".join(parts) or "nothing"


def _sorry(run_dir: Path, error: Exception) -> str:
    why = getattr(error, "strerror", None) or error
    return f"osler: run {run_dir.name} is not in the database yet ({why}); nothing of it is lost, it lies in {run_dir}"


def _unusable(database: Path, error: Exception) -> str:
    if isinstance(error, StoreError):
        return f"osler: {error}"
    return f"osler: {database} cannot be used ({getattr(error, 'strerror', None) or error}); runs are read one by one"
