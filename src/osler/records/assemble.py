"""A run's folder as a report: straight from the journals, or from Parquet where heat maps have been packed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from osler.core.finding import Finding
from osler.core.report import Report, Series
from osler.records import merge, pack, parse
from osler.records.folder import read_subject
from osler.records.read import Process, columns, read_run
from osler.records.thin import MAX_COLUMNS, in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_CELLS = 4_000_000  # of one heat map in a report


def assemble(run_dir: Path) -> Report:
    """What is known about a run. It never raises: what cannot be read is said in the notes.

    Findings are merged by key within a process and kept apart between processes; `where.rank` says whose they are in a
    distributed run. Curves and heat maps are thinned to what a screen can show (see `osler.records.thin`).
    """
    return build(run_dir, read_run(run_dir), read_subject(run_dir))


def build(run_dir: Path, processes: list[Process], subject: dict[str, object]) -> Report:
    """The report of what has been read already; see `assemble`."""
    from osler import __version__

    subject = {"kind": "run", **subject, "run": run_dir.name}
    environment = parse.mapping(subject.pop("environment", None))
    named = _named(processes, subject)
    for _, process in named:
        environment.update({k: v for k, v in process.environment.items() if k not in environment})
    notes: list[str] = []
    for label, process in named:
        notes.extend(process.notes)
        notes.extend(_troubles(label, process))
    series: list[Series] = []
    for label, process in named:
        series.extend(_curves(label, process))
        try:
            series.extend(_maps(label, process))
        except OSError as error:
            notes.append(f"the heat maps of process {process.pid} could not be read: {error.strerror or error}")
    steps = max((s for _, p in named if (s := _steps(p)) is not None), default=None)
    if steps is not None:
        subject.setdefault("steps", steps)
    return Report(
        subject=subject,
        environment=environment,
        findings=_findings(named),
        not_checked=merge.not_checked(pair for _, p in named for pair in [*p.not_checked, *_cut_short(p)]),
        overhead=merge.overhead([p.overhead for _, p in named if p.overhead]),
        series=series,
        notes=list(dict.fromkeys(notes)),
        layers=next((p.layers for _, p in named if p.layers), []),
        version=__version__,
    )


def _named(processes: list[Process], subject: dict[str, object]) -> list[tuple[str, Process]]:
    """The processes with their labels, the main one first."""
    parent = parse.whole(subject.get("parent_pid"))
    unranked = [p for p in processes if p.rank is None]
    if not any(p.ppid == parent for p in unranked):
        parent = None  # started through something else (`uv run`, a shell script): the first one is the main one
    labels = merge.Labels(parent)
    named = [(labels.name(p.pid, p.ppid, p.rank), p) for p in processes]
    return sorted(named, key=lambda n: (n[0] != "main", -1 if n[1].rank is None else n[1].rank))


def _cut_short(process: Process) -> Iterator[tuple[str, str]]:
    """What a process that never reached its end could not judge."""
    if process.records and not process.ended and not process.alive:
        yield "what is judged when the training ends", f"process {process.pid} was killed or left through os._exit"


def _troubles(label: str, process: Process) -> Iterator[str]:
    if process.records and not process.ended and not process.alive:
        yield f"process {process.pid} ended without saying so (killed?)"
    if process.unread:
        yield f"{process.unread} records of process {process.pid} ({label}) could not be read and are left out"
    if process.problem:
        yield f"the journal of process {process.pid} could not be read: {process.problem}"


def _findings(named: list[tuple[str, Process]]) -> list[Finding]:
    seen: list[tuple[float, Finding]] = []
    for _, process in named:
        distributed = process.rank is not None and process.world != 1
        for key, finding in process.findings.items():
            if distributed and finding.where.rank is None:
                finding = replace(finding, where=replace(finding.where, rank=process.rank))
            seen.append((process.times[key], finding))
    return [finding for _, finding in sorted(seen, key=lambda s: s[0])]


def _steps(process: Process) -> int | None:
    """Optimizer steps of a process: what it said at its end, else the most that its records let one know."""
    if process.steps is not None:
        return process.steps
    known = [parse.whole(process.overhead.get("steps"))]
    for curve in process.curves.values():
        known.append(curve.result()[0][-1] + 1)
    return max((k for k in known if k is not None), default=None)


def _curves(label: str, process: Process) -> Iterator[Series]:
    for name, curve in process.curves.items():
        steps, values = curve.result()
        yield Series(name, "curve", steps, values, source=label)


def _maps(label: str, process: Process) -> Iterator[Series]:
    """The heat maps of a process.

    Raises:
        OSError: the packed file cannot be read.
    """
    if not process.blocks:
        return
    packed = pack.maps_file(process)
    lengths: dict[str, int] = {}
    rows: dict[str, dict[str, int]] = {}
    for block in process.blocks:
        lengths[block.series] = lengths.get(block.series, 0) + len(block.steps)
        index = rows.setdefault(block.series, {})
        for row in block.rows:
            index.setdefault(row, len(index))
    pools = {name: _Pool(rows[name], length) for name, length in lengths.items()}
    for name, names, steps, values in pack.packed_columns(packed) if packed.exists() else columns(process):
        if name in pools:
            pools[name].add(names, steps, values)
    for name, pool in pools.items():
        steps, cells = pool.result()
        if steps:
            yield Series(name, "heatmap", steps, merge.cells(cells), rows=list(rows[name]), source=label)


@dataclass(slots=True)
class _Group:
    step: int
    cells: NDArray[np.float32]


class _Pool:
    """Columns joined, as many neighbours into one as it takes to fit, by their largest values (NaN before any)."""

    def __init__(self, rows: dict[str, int], length: int) -> None:
        self._rows = rows
        self._stride = max(-(-length // MAX_COLUMNS), -(-length * len(rows) // MAX_CELLS), 1)
        self._seen = 0
        self._groups: list[_Group] = []

    def add(self, names: tuple[str, ...], steps: list[int], values: NDArray[np.float32]) -> None:
        import numpy as np

        order = np.array([self._rows[n] for n in names if n in self._rows])
        if len(order) != values.shape[1]:
            return
        for step, column in zip(steps, values, strict=True):
            if self._seen % self._stride == 0:
                self._groups.append(_Group(step, np.full(len(self._rows), np.nan, np.float32)))
                self._groups[-1].cells[order] = column
            else:
                cells = self._groups[-1].cells
                cells[order] = np.maximum(cells[order], column)
            self._seen += 1

    def result(self) -> tuple[list[int], list[list[float]]]:
        return in_order([g.step for g in self._groups], [g.cells.tolist() for g in self._groups])
