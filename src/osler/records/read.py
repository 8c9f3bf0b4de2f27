"""Reading the journals of a run, in whatever state their writers left them."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from osler.core.finding import Finding
from osler.core.runfolder import ARRAYS
from osler.records import parse
from osler.records.processes import alive
from osler.records.thin import Curve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAME = re.compile(r"journal-(\d{1,10})-(\d{1,19})\.jsonl")
MAX_ROWS = 20_000  # of one heat map


@dataclass(slots=True)
class Block:
    """One `matrix` record: where its float32 columns lie in the arrays file."""

    series: str
    rows: tuple[str, ...]
    steps: list[int]
    offset: int


@dataclass(slots=True)
class Process:
    """What one process wrote.

    Attributes:
        journal: its journal.
        pid, start: from the journal's name; the start is in the unit of `processes.start_ticks`.
        ppid, rank, world, time, argv, python: from its start record, where there is one.
        awake: the probes were in place.
        torch: its torch version.
        findings: by key, in the order seen, with how often; with the time of day at which each was seen.
        curves: thinned to `thin.MAX_POINTS` each.
        blocks: heat map columns, as they lie in the arrays file.
        not_checked: pairs of what and why.
        ended: it said that it ends.
        steps: optimizer steps, as it said at its end.
        records: how many were read, beyond start, awake, environment and end.
        unread: lines that held no record, the torn last one left out.
        problem: why the file could not be read to its end, empty when it could.
    """

    journal: Path
    pid: int
    start: int
    ppid: int | None = None
    rank: int | None = None
    world: int | None = None
    time: float = 0.0
    argv: list[str] = field(default_factory=list)
    python: str = ""
    awake: bool = False
    torch: str | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    not_checked: list[tuple[str, str]] = field(default_factory=list)
    overhead: dict[str, object] = field(default_factory=dict)
    environment: dict[str, object] = field(default_factory=dict)
    layers: list[dict[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: bool = False
    steps: int | None = None
    records: int = 0
    unread: int = 0
    problem: str = ""

    @property
    def arrays(self) -> Path:
        """Its arrays file; there need not be one."""
        return self.journal.with_name(ARRAYS.format(pid=self.pid, start=self.start))

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return alive(self.pid, self.start)


def journals(run_dir: Path) -> list[tuple[Path, int, int]]:
    """The journals in a run's folder, each with the pid and start in its name; by name."""
    try:
        found = [(p, _NAME.fullmatch(p.name)) for p in sorted(run_dir.iterdir())]
    except OSError:
        return []
    return [(p, int(m[1]), int(m[2])) for p, m in found if m and _is_file(p)]


def read_run(run_dir: Path) -> list[Process]:
    """What every process of the run wrote, by the time of its start. It never raises."""
    processes = [read_journal(path, pid, start) for path, pid, start in journals(run_dir)]
    return sorted(processes, key=lambda p: (p.time, p.start, p.pid))


def read_journal(path: Path, pid: int, start: int) -> Process:
    """What one process wrote. It never raises: `problem` and `unread` say what could not be read."""
    process = Process(path, pid, start)
    rows: dict[str, tuple[str, ...]] = {}
    try:
        with path.open("rb") as f:
            for line in _lines(f):
                if not line.strip():
                    continue
                data = parse.record(line)
                if data is None:
                    process.unread += 1
                else:
                    _take(process, data, rows)
    except OSError as error:
        process.problem = error.strerror or type(error).__name__
    return process


def _lines(f: BinaryIO) -> Iterator[bytes]:
    """Whole lines of bearable length; an overlong one comes out as one that is no record."""
    while line := f.readline(parse.MAX_LINE):
        if line.endswith(b"\n"):
            yield line
        elif len(line) == parse.MAX_LINE:
            while (rest := f.readline(parse.MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            yield b"?"


def _take(process: Process, data: dict[str, object], rows: dict[str, tuple[str, ...]]) -> None:
    kind = data["t"]
    if kind == "start":
        _start(process, data)
        return
    if kind == "awake":
        process.awake = True
        process.torch = parse.text(data.get("torch"))
        return
    if kind == "environment":
        process.environment.update(parse.mapping(data.get("facts")))
        return
    if kind == "end":
        process.ended = True
        process.steps = max(parse.whole(data.get("steps")) or 0, process.steps or 0)
        return
    process.records += 1
    if kind == "points":
        steps, values = parse.steps_and_values(data)
        name = parse.text(data.get("series"))
        if name is not None and steps:
            curve = process.curves.setdefault(name, Curve())
            for step, value in zip(steps, values, strict=True):
                curve.add(step, value)
    elif kind == "matrix":
        _matrix(process, data, rows)
    elif kind == "finding":
        _finding(process, data)
    elif kind == "again":
        _again(process, data)
    elif kind == "not_checked":
        what, why = parse.text(data.get("what")), parse.text(data.get("why"))
        if what is not None and why is not None:
            process.not_checked.append((what, why))
    elif kind == "overhead":
        process.overhead = parse.mapping(data.get("figures"))
    elif kind == "layers":
        found = data.get("rows")
        process.layers = [parse.mapping(r) for r in found] if isinstance(found, list) else []
    elif kind == "note":
        note = parse.text(data.get("text"))
        if note is not None and note not in process.notes:
            process.notes.append(note)


def _start(process: Process, data: dict[str, object]) -> None:
    process.ended = False  # after an exec the same process goes on in the same file
    process.ppid = parse.whole(data.get("ppid"))
    process.rank = parse.whole(data.get("rank"))
    process.world = parse.whole(data.get("world"))
    begun = parse.real(data.get("time"))
    if not process.time and begun is not None and 0 < begun < 1e12:
        process.time = begun
    argv = data.get("argv")
    process.argv = [a for a in argv if isinstance(a, str)] if isinstance(argv, list) else []
    process.python = parse.text(data.get("python")) or ""


def _finding(process: Process, data: dict[str, object]) -> None:
    found = parse.finding(data.get("finding"))
    if found is None:
        process.unread += 1
        return
    key = parse.text(data.get("key")) or found.key
    known = process.findings.get(key)
    if known is None:
        process.findings[key] = found
        seen = parse.real(data.get("time"))
        earlier = next(reversed(process.times.values()), process.time)  # a clock may be set back
        process.times[key] = max(seen, earlier) if seen is not None and 0 < seen < 1e12 else earlier
    else:
        known.count = min(known.count + found.count, 2**63 - 1)
        known.last_step = _later(known.last_step, found.last_step)


def _again(process: Process, data: dict[str, object]) -> None:
    known = process.findings.get(parse.text(data.get("key")) or "")
    if known is not None:
        known.count = max(known.count, parse.whole(data.get("count")) or 0)
        known.last_step = _later(known.last_step, parse.whole(data.get("last_step")))


def _later(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _matrix(process: Process, data: dict[str, object], rows: dict[str, tuple[str, ...]]) -> None:
    name, found = parse.text(data.get("series")), data.get("rows")
    if name is None:
        return
    if isinstance(found, list) and 0 < len(found) <= MAX_ROWS:
        rows[name] = tuple(map(str, found))
    elif found is not None:
        rows.pop(name, None)
    shape, offset = data.get("shape"), parse.whole(data.get("offset"))
    steps = data.get("steps")
    if offset is None or offset < 0 or not isinstance(steps, list):
        return
    numbers = [parse.whole(s) for s in steps]
    good = [n for n in numbers if n is not None]
    if name in rows and len(good) == len(numbers) and shape == [len(good), len(rows[name])]:
        process.blocks.append(Block(name, rows[name], good, offset))


def columns(process: Process) -> Iterator[tuple[str, tuple[str, ...], list[int], NDArray[np.float32]]]:
    """The heat map columns of a process, record by record: series, rows, steps, values [steps, rows].

    Columns beyond the end of the file (it was cut short) are left out.

    Raises:
        OSError: the file cannot be read.
    """
    if not process.blocks or not _is_file(process.arrays):
        return
    import numpy as np

    with process.arrays.open("rb") as f:
        size = f.seek(0, 2)
        for block in process.blocks:
            width = len(block.rows)
            n = min(len(block.steps), max(size - block.offset, 0) // (4 * width))
            if n:
                f.seek(block.offset)
                data = f.read(4 * n * width)
                if len(data) < 4 * n * width:
                    raise OSError(0, "it was cut short while it was read")
                yield block.series, block.rows, block.steps[:n], np.frombuffer(data, dtype="<f4").reshape(n, width)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False
