"""A drift monitor as a file: its reference and panes as rows of one Parquet table, the rest as JSON in its header."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from osler.core.jsonable import dumps, number
from osler.core.settings import Settings
from osler.data.drift import store
from osler.data.drift.panes import EventClock
from osler.data.drift.symbols import SequentialTests
from osler.data.drift.verdicts import Resample, WindowVerdict
from osler.data.need import DataError

if TYPE_CHECKING:
    from osler.data.drift.monitor import DriftMonitor

KEY = b"osler.drift-monitor"
VERSION = 1
SECTIONS = ("data", "drift", "monitor")  # of the settings, those that a monitor uses
_LARGEST = 1 << 32


def save(monitor: DriftMonitor, path: Path) -> None:
    """Write a monitor; the file is replaced as a whole, so that a reader never sees half of it.

    Raises:
        DataError: it cannot be written there.
    """
    import pyarrow.parquet as pq

    tables = [_marked(store.to_arrow(monitor.reference), None)]
    tables += [_marked(store.to_arrow(state), pane) for pane, state in sorted(monitor.panes.items())]
    table = pa.concat_tables(tables).replace_schema_metadata({KEY: dumps(_about(monitor)).encode()})
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            pq.write_table(table, file, compression="zstd", write_statistics=False)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except (OSError, pa.ArrowException) as error:
        beside.unlink(missing_ok=True)
        raise DataError(f"the monitor cannot be written to {path}: {str(error).splitlines()[0]}") from None


def _marked(table: pa.Table, pane: int | None) -> pa.Table:
    marks = pa.array([pane] * table.num_rows, pa.int64())
    return table.append_column("pane", marks).replace_schema_metadata(None)


def _about(m: DriftMonitor) -> dict[str, Any]:
    clock = m.clock
    if isinstance(clock, EventClock):
        ticks = {"latest": clock.latest, "late": clock.late, "ahead": clock.ahead, "untimed": clock.untimed}
    else:
        ticks = {"seen": clock.seen}
    triggers = [[t.reason, list(t.columns), t.run, t.window.to_dict()] for t in m.triggers]
    return {
        "version": VERSION,
        "name": m.reference.name,
        "reference_rows": m.reference.rows,
        "settings": {name: asdict(getattr(m.settings, name)) for name in SECTIONS},
        "timed": m.timed,
        "length": m.length,
        "step": m.step,
        "time": m.intake.time,
        "collect": m.collect,
        "clock": ticks,
        "runs": m.run.lengths,
        "rows": m.rows,
        "unusable": m.unusable,
        "told": sorted(m.told),
        "next": m.next,
        "first": m.first,
        "index": m.index,
        "dropped_panes": m.dropped_panes,
        "left_over": None if m.left_over is None else m.left_over.to_dict(),
        "verdicts": [v.to_dict() for v in m.verdicts],
        "triggers": triggers,
        "effects": [[index, effects] for index, effects in m.effects],
        "sequential": None if m.sequential is None else m.sequential.state(),
    }


def load(path: str | Path) -> DriftMonitor:
    """The monitor that `save` wrote.

    Raises:
        DataError: there is no such file, or it holds no monitor, or is damaged.
    """
    import pyarrow.parquet as pq

    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        with pq.ParquetFile(str(path)) as file:
            raw = (file.schema_arrow.metadata or {}).get(KEY)
            if raw is None:
                raise DataError(f"{path} is a Parquet file but no drift monitor of osler")
            meta = file.metadata
            if sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) > _LARGEST:
                raise DataError(f"{path} is larger than osler reads")
            table = file.read()
        about = json.loads(raw)
        if int(about["version"]) > VERSION:
            raise DataError(
                f"{path} has format {about['version']}, newer than this osler reads ({VERSION}): upgrade osler"
            )
        return _built(about, table)
    except DataError as error:
        prefix = "" if str(path) in str(error) else f"{path}: "
        raise DataError(f"{prefix}{error}") from None
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise DataError(
            f"{path} is no drift monitor of osler, or is damaged: {type(error).__name__} {why}".rstrip()
        ) from None


def _settings(saved: dict[str, Any]) -> Settings:
    """The settings of then; one that this version no longer has is passed over, a new one has its default."""
    tree = Settings()
    for name in SECTIONS:
        section = getattr(tree, name)
        known = {f.name for f in fields(section)}
        tree = replace(tree, **{name: replace(section, **{k: v for k, v in saved[name].items() if k in known})})
    return tree


def _built(about: dict[str, Any], table: pa.Table) -> DriftMonitor:
    from osler.data.drift.monitor import DriftMonitor

    marks = table.column("pane").to_numpy(zero_copy_only=False)
    is_reference = table.column("pane").is_null().to_numpy(zero_copy_only=False)
    reference = store.from_arrow(table.filter(pa.array(is_reference)))
    reference.name, reference.rows = str(about["name"]), int(about["reference_rows"])
    sequential = None if about["sequential"] is None else SequentialTests.from_state(about["sequential"])
    m = DriftMonitor.__new__(DriftMonitor)
    settings = _settings(about["settings"])
    time = None if about["time"] is None else str(about["time"])
    length, step = int(about["length"]), int(about["step"])
    if step < 1 or length < step or length % step:
        raise DataError("its windows contradict each other")
    m._start(reference, settings, bool(about["timed"]), length, step, time, sequential, bool(about["collect"]))
    for pane in np.unique(marks[~is_reference]).astype(np.int64).tolist():
        state = reference.empty("current")
        state += store.from_arrow(table.filter(pa.array(marks == pane)))
        m.panes[pane] = state
    ticks = about["clock"]
    for name in ("latest", "late", "ahead", "untimed") if isinstance(m.clock, EventClock) else ("seen",):
        setattr(m.clock, name, int(ticks[name]))
    m.run.lengths = {str(k): int(v) for k, v in about["runs"].items()}
    m.rows, m.index, m.dropped_panes = int(about["rows"]), int(about["index"]), int(about["dropped_panes"])
    m.intake.unusable = {str(k): int(v) for k, v in about["unusable"].items()}
    m.told = set(map(str, about["told"]))
    m.next = None if about["next"] is None else int(about["next"])
    m.first = None if about["first"] is None else int(about["first"])
    m.left_over = None if about["left_over"] is None else WindowVerdict.from_dict(about["left_over"])
    m.verdicts.extend(WindowVerdict.from_dict(v) for v in about["verdicts"])
    for reason, columns, run, window in about["triggers"]:
        m.triggers.append(Resample(str(reason), tuple(map(str, columns)), int(run), WindowVerdict.from_dict(window)))
    for index, effects in about["effects"]:
        m.effects.append((int(index), {str(k): number(v) for k, v in effects.items()}))
    return m
