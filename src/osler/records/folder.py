"""`.osler/`: where it lies, its runs, and what is thrown away when."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from osler.core.jsonable import dumps
from osler.core.runfolder import SUBJECT
from osler.records import parse
from osler.records.disk import reason
from osler.records.processes import alive, start_ticks
from osler.records.read import journals

NAME = ".osler"
_RUN = re.compile(r"(\d{8}-\d{6})-([0-9a-f]{4})")
_TRASH = ".gone-"


class NoRun(LookupError):
    """No run of that name, or more than one; the message is one sentence for the user."""


class NewRun(NamedTuple):
    """A run's new folder, and the one line to say where it is not the usual one."""

    run_dir: Path
    line: str | None


class Home:
    """An `.osler/` folder. Making the object touches nothing on disk.

    Args:
        path: the `.osler/` folder itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def find(cls, cwd: Path) -> Home | None:
        """The `.osler/` of `cwd`, or of the nearest folder above it that has one of this user's; None without any."""
        here = cwd.absolute()
        for folder in (here, *here.parents):
            path = folder / NAME
            try:
                if path.is_dir() and (folder == here or path.stat().st_uid == os.geteuid()):
                    return cls(path)
            except OSError:
                continue
        return None

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.path / "runs"

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "osler.db"

    def make(self) -> None:
        """Make the folder, mode 0700, with a `.gitignore` that keeps it out of git.

        Raises:
            OSError: it cannot be made.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        self.runs.mkdir(mode=0o700, exist_ok=True)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")

    def ids(self) -> list[str]:
        """The runs, oldest first. What does not look like a run's folder, or is a link, is none."""
        try:
            with os.scandir(self.runs) as entries:
                found = [(e.name[:15], e.stat().st_mtime_ns, e.name) for e in entries if _is_run(e)]
        except OSError:
            return []
        return [name for _, _, name in sorted(found)]

    def find_run(self, name: str | None) -> Path:
        """A run's folder by its id, the beginning of it, or its last four digits; None and `latest` mean the last.

        Raises:
            NoRun: there is none, or several.
        """
        ids = self.ids()
        if not ids:
            raise NoRun(f"there are no runs in {self.path}: `osler run SCRIPT` makes one")
        if name is None or name == "latest":
            return self.runs / ids[-1]
        matches = [i for i in ids if i == name] or [i for i in ids if name and (i.startswith(name) or i[16:] == name)]
        if len(matches) == 1:
            return self.runs / matches[0]
        if matches:
            raise NoRun(f"{name!r} is the beginning of {len(matches)} runs: {', '.join(matches[-4:])}")
        raise NoRun(f"there is no run {name!r} in {self.path}; the last one is {ids[-1]}")

    def _new_run(self, facts: Mapping[str, object]) -> Path:
        self.make()
        while True:
            run_dir = self.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
            try:
                run_dir.mkdir(mode=0o700)
                break
            except FileExistsError:
                continue
        try:
            write_subject(run_dir, facts)
        except OSError:
            shutil.rmtree(run_dir, ignore_errors=True)
            raise
        return run_dir


def _is_run(entry: os.DirEntry[str]) -> bool:
    return bool(_RUN.fullmatch(entry.name)) and entry.is_dir(follow_symlinks=False)


def new_run(cwd: Path) -> NewRun:
    """A new run's folder in `cwd/.osler`, or in a private temporary folder when that cannot be written.

    It holds a `subject.json` with `kind`, `run`, `cwd`, `started`, `parent_pid` and `parent_start` of this process, so
    that the run counts as alive from the first moment. A disk without room for that file counts as one that cannot be
    written.

    Raises:
        OSError: no temporary folder can be written either.
    """
    pid = os.getpid()
    facts: dict[str, object] = {"kind": "run", "cwd": str(cwd), "started": time.time()}
    facts |= {"parent_pid": pid, "parent_start": start_ticks(pid)}
    try:
        return NewRun(Home(cwd / NAME)._new_run(facts), None)
    except OSError as error:
        first = error
    for base in dict.fromkeys((tempfile.gettempdir(), "/dev/shm")):
        try:
            folder = Path(tempfile.mkdtemp(prefix="osler-", dir=base))
            run_dir = Home(folder / NAME)._new_run(facts)
        except OSError:
            continue
        return NewRun(run_dir, f"osler: {reason(first)} ({cwd / NAME}): this run is recorded in {run_dir}")
    raise first


def read_subject(run_dir: Path) -> dict[str, object]:
    """What the parent wrote about the run; empty where there is nothing readable."""
    try:
        return parse.mapping(json.loads((run_dir / SUBJECT).read_bytes()))
    except (OSError, ValueError, RecursionError):
        return {}


def write_subject(run_dir: Path, facts: Mapping[str, object]) -> None:
    """Add facts to the run's `subject.json`, all or nothing, mode 0600.

    The parent adds `command`, `child_pid`, `environment`, and at the end `exit_code` and `seconds`; with an `exit_code`
    the run no longer counts as alive because its parent is.

    Raises:
        OSError: it cannot be written.
    """
    subject = {"run": run_dir.name, **read_subject(run_dir), **facts}
    replace_file(run_dir / SUBJECT, dumps(subject, indent=1).encode() + b"\n")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file under another name, then rename it: readers see the old one or the new one. Mode 0600.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as f:  # noqa: PTH123 - from a descriptor
            f.write(data)
            f.flush()
            os.fsync(fd)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def is_live(run_dir: Path) -> bool:
    """Whether the run still goes on: its parent runs and has not said how it ended, or one of its processes runs."""
    subject = read_subject(run_dir)
    if "exit_code" not in subject and alive(subject.get("parent_pid"), subject.get("parent_start")):
        return True
    return any(alive(pid, start) for _, pid, start in journals(run_dir))


def size(path: Path) -> int:
    """Bytes of disk that a folder's files take, links not followed."""
    return sum(s.st_blocks * 512 for s in _stats(path))


def _stats(path: Path) -> Iterator[os.stat_result]:
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from _stats(Path(entry.path))
                else:
                    yield entry.stat(follow_symlinks=False)
    except OSError:
        return


@dataclass(frozen=True, slots=True)
class Pruned:
    """A run that was, or would be, thrown away: its id, its size in bytes, and why."""

    id: str
    bytes: int
    why: str


def prune(home: Home, keep_runs: int, keep_days: float, max_mb: float, dry_run: bool = False) -> list[Pruned]:
    """Throw away the oldest runs.

    A run that still goes on is never touched, nor is anything outside the folder: links are left alone, and so is all
    that has not the name of a run.

    Args:
        home: the `.osler/` folder.
        keep_runs: how many runs are kept at most.
        keep_days: age in days above which a run goes.
        max_mb: size of `.osler/` in MiB above which the oldest go until it fits; the last run stays.
        dry_run: only say what would go.

    Returns:
        What went, oldest first. A run that could not be removed is not in it.
    """
    if home.runs.is_symlink():
        return []
    if not dry_run:
        _sweep(home)
    ids = home.ids()
    total = size(home.path)
    out = []
    for n, run in enumerate(ids):
        run_dir = home.runs / run
        left = len(ids) - n
        age = (time.time() - _born(run)) / 86_400
        if left > keep_runs:
            why = f"more than {keep_runs} runs"
        elif age > keep_days:
            why = f"older than {keep_days:g} days"
        elif total > max_mb * 2**20 and left > 1:
            why = f"more than {max_mb:g} MiB"
        else:
            break
        if is_live(run_dir):
            continue
        freed = size(run_dir)
        if dry_run or _remove(run_dir):
            total -= freed
            out.append(Pruned(run, freed, why))
    return out


def _born(run: str) -> float:
    try:
        return time.mktime(time.strptime(run[:15], "%Y%m%d-%H%M%S"))
    except (ValueError, OverflowError):
        return time.time()


def _remove(run_dir: Path) -> bool:
    """Out of sight in one step, then away: a removal that was cut short leaves no half of a run."""
    gone = run_dir.with_name(_TRASH + run_dir.name)
    try:
        if not stat.S_ISDIR(run_dir.lstat().st_mode):
            return False
        run_dir.rename(gone)
    except OSError:
        return False
    shutil.rmtree(gone, ignore_errors=True)
    return True


def _sweep(home: Home) -> None:
    """What an earlier removal left behind."""
    try:
        with os.scandir(home.runs) as entries:
            left = [Path(e.path) for e in entries if e.name.startswith(_TRASH) and e.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
