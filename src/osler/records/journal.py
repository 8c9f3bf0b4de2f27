"""The journal of one process: what a part has to say, appended to the run's folder.

This runs inside the user's process: standard library only, no thread, nothing on disk before there is something to say,
and no way for it to stop the script. The format of the records stands in `docs/design.md`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from osler.core.finding import Finding
from osler.core.jsonable import dumps
from osler.core.runfolder import ARRAYS, JOURNAL
from osler.records.buffer import Buffer
from osler.records.disk import AppendFile, reason
from osler.records.processes import start_ticks

if TYPE_CHECKING:
    from osler.core.sink import Sink

SCHEMA = 1
BUFFER_BYTES = 64 * 1024  # what may wait in memory while the disk takes it
QUEUE_BYTES = 1024 * 1024  # lines other than findings that are kept while the disk does not take them

_P = ParamSpec("_P")


def _never_raises(method: Callable[Concatenate[Journal, _P], None]) -> Callable[Concatenate[Journal, _P], None]:
    """A method whose own faults become one line on stderr; KeyboardInterrupt and its kin still reach the script."""

    @wraps(method)
    def safe(self: Journal, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            if self._pid != os.getpid():  # forked, and nobody told us
                self._fresh()
            with self._lock:
                method(self, *args, **kwargs)
        except Exception as error:
            self._say_fault(method.__name__, error)

    return safe


class Journal:
    """A sink that appends to `journal-<pid>-<start>.jsonl` and `arrays-<pid>-<start>.f32`.

    Findings, notes and the fact that osler is awake are written at once; curves and heat maps wait until `flush_s`
    seconds have passed since the last write or 64 KiB are waiting. Each write is whole lines in one `os.write`.

    When the disk does not take it, one line on stderr says so and the journal goes on in memory: all findings, and
    the rest thinned to a bounded size. It tries again at the next finding, at `flush` and at `close`; what findings are
    left then are printed. No method raises.

    Args:
        run_dir: the run's folder; it must exist.
        flush_s: longest time in seconds that a curve's points wait while more come in.
    """

    def __init__(self, run_dir: str, flush_s: float = 2.0) -> None:
        self._run_dir = os.fspath(run_dir)
        self._flush_s = flush_s
        self._said: set[str] = set()
        self._fresh()

    def _fresh(self) -> None:
        """The state of a process that has said nothing yet."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        start = start_ticks(self._pid) or int(time.time() * 1000)
        self._lines = AppendFile(f"{self._run_dir}/{JOURNAL.format(pid=self._pid, start=start)}", lines=True)
        self._arrays = AppendFile(f"{self._run_dir}/{ARRAYS.format(pid=self._pid, start=start)}", lines=False)
        self._queue: list[tuple[bytes, Finding | None]] = []
        self._queued = 0  # bytes in the queue that are not findings
        self._buffer = Buffer()
        self._rows: dict[str, tuple[str, ...]] = {}  # as the last matrix record of each series has them
        self._begun = False  # the start record is in the queue or on disk
        self._worth = False  # there is something that deserves a file
        self._lines_bad = self._arrays_bad = False
        self._let_go = 0
        self._last = time.monotonic()

    # -- the sink ------------------------------------------------------------------------------------------------------

    @_never_raises
    def awake(self, torch: str | None) -> None:
        """The probes are in place; `torch` is its version, None where the process has none."""
        self._record({"t": "awake", "torch": torch})
        self._write()

    @_never_raises
    def finding(self, finding: Finding) -> None:
        """A new finding; it is on disk when this returns, where there is a disk."""
        try:
            line = _finding_line(finding)
        except Exception:  # evidence that cannot be written must not take the finding with it
            line = _finding_line(replace(finding, evidence={}))
        self._put(line, finding)
        self._write(retry=True)
        if not self._lines_bad:
            self._sync()

    @_never_raises
    def again(self, key: str, count: int, last_step: int | None) -> None:
        """The finding of that key was seen again: its total count and the last step."""
        self._worth = True
        self._buffer.again(key, count, last_step)
        self._due()

    @_never_raises
    def points(self, series: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """More points of a curve."""
        self._worth = True
        self._buffer.points(series, steps, values)
        self._due()

    @_never_raises
    def matrix(self, series: str, rows: Sequence[str], steps: Sequence[int], values: Sequence[Sequence[float]]) -> None:
        """More columns of a heat map: `values[i][j]` belongs to `steps[i]` and `rows[j]`."""
        self._worth = True
        self._buffer.matrix(series, rows, steps, values)
        self._due()

    @_never_raises
    def not_checked(self, what: str, why: str) -> None:
        """A rule, or a thing, that could not be judged, and the reason in one sentence."""
        self._record({"t": "not_checked", "what": what, "why": why})
        self._due()

    @_never_raises
    def overhead(self, figures: Mapping[str, float | int | str]) -> None:
        """The watcher's own cost so far; of several calls between two writes the last is kept."""
        self._worth = True
        self._buffer.overhead(figures)
        self._due()

    @_never_raises
    def environment(self, facts: Mapping[str, object]) -> None:
        """Facts about the process. Alone they are no reason to make a file."""
        self._record({"t": "environment", "facts": facts}, worth=False)
        self._due()

    @_never_raises
    def layers(self, rows: Sequence[Mapping[str, object]]) -> None:
        """The module calls of one step."""
        self._record({"t": "layers", "rows": list(rows)})
        self._due()

    @_never_raises
    def note(self, text: str) -> None:
        """One line for the user; it is written at once, because the parent shows it while the script runs."""
        self._record({"t": "note", "text": text})
        self._write()

    def folder(self, name: str) -> Path | None:
        """The folder of that name in the run's folder, mode 0700; None where nothing can be written."""
        try:
            if name in ("", ".", "..") or "/" in name:
                return None
            path = Path(self._run_dir, name)
            path.mkdir(mode=0o700, exist_ok=True)
            return path if os.access(path, os.W_OK | os.X_OK) else None
        except OSError as error:
            self._say_bad(error)
        except Exception as error:
            self._say_fault("folder", error)
        return None

    @_never_raises
    def flush(self) -> None:
        """Write out what is buffered."""
        self._write(retry=True)

    @_never_raises
    def close(self, steps: int) -> None:
        """The process ends after that many optimizer steps. A process that had nothing to say leaves no file.

        What is recorded afterwards still arrives: the file is opened again.
        """
        if self._worth:
            self._write(retry=True)
            self._record({"t": "end", "steps": int(steps)})
            if not self._lines_bad and self._drain():
                self._sync()
        for _, finding in self._queue:
            if finding is not None:
                self._err(_spoken(finding))
        self._queue = [entry for entry in self._queue if entry[1] is None]
        self._lines.close()
        self._arrays.close()
        self._worth = False

    def after_fork(self) -> None:
        """In the child of a fork: a journal of its own, with nothing in it of what the parent still has to write."""
        try:
            self._lines.close()
            self._arrays.close()
        finally:
            self._fresh()

    # -- on the way to the disk ----------------------------------------------------------------------------------------

    def _record(self, record: Mapping[str, object], worth: bool = True) -> None:
        self._worth = self._worth or worth
        self._put(dumps(record), None)

    def _put(self, line: str, finding: Finding | None) -> None:
        self._begin()
        self._worth = self._worth or finding is not None
        if finding is None:
            if self._lines_bad and self._queued + len(line) > QUEUE_BYTES:
                self._let_go += 1
                return
            self._queued += len(line) + 1
        self._queue.append((line.encode() + b"\n", finding))

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            start = {
                "t": "start",
                "schema": SCHEMA,
                "pid": self._pid,
                "ppid": os.getppid(),
                "time": time.time(),
                "argv": list(getattr(sys, "orig_argv", sys.argv)),
                "python": sys.version.split()[0],
                "rank": _number(os.environ.get("RANK")),
                "world": _number(os.environ.get("WORLD_SIZE")),
            }
            line = dumps(start).encode() + b"\n"
            self._queued += len(line)
            self._queue.append((line, None))

    def _due(self) -> None:
        """Write when enough is waiting, or has waited long enough."""
        waiting = self._buffer.bytes + self._queued
        if waiting >= BUFFER_BYTES or time.monotonic() - self._last >= self._flush_s:
            self._write()

    def _write(self, retry: bool = False) -> None:
        """Hand everything to the disk; what it does not take stays, in bounds."""
        self._last = time.monotonic()
        if not self._worth:
            return
        if self._lines_bad and not (retry and self._drain()):
            self._let_go += self._buffer.thin()
            return
        self._begin()
        for line in self._buffer.take_lines():
            self._queue.append((line, None))
            self._queued += len(line)
        if not self._arrays_bad or retry:
            self._write_arrays()
        if self._arrays_bad:
            self._let_go += self._buffer.thin()
        if self._let_go and not self._lines_bad:
            why = f"the disk did not take everything: {self._let_go} points or records were let go"
            self._queue.append((dumps({"t": "not_checked", "what": "curves", "why": why}).encode() + b"\n", None))
            self._let_go = 0
        self._drain()

    def _drain(self) -> bool:
        """Write the queue; True when all of it is on disk."""
        if not self._queue:
            self._lines_bad = False
            return True
        done, error = self._lines.append(b"".join(line for line, _ in self._queue))
        kept = 0
        while done > 0:
            done -= len(self._queue[kept][0])
            kept += 1
        del self._queue[:kept]
        self._queued = sum(len(line) for line, finding in self._queue if finding is None)
        self._lines_bad = error is not None
        if error is not None:
            self._say_bad(error)
        return error is None

    def _write_arrays(self) -> None:
        blocks = self._buffer.take_blocks()
        self._arrays_bad = False
        if not blocks:
            return
        data = b"".join(_little_endian(block.values) for block in blocks)
        _, error = self._arrays.append(data)
        if error is not None:
            self._arrays_bad = True
            self._buffer.put_back(blocks)
            self._say_bad(error)
            return
        offset = self._arrays.size - len(data)
        for block in blocks:
            record: dict[str, object] = {"t": "matrix", "series": block.series}
            if self._rows.get(block.series) != block.rows:
                self._rows[block.series] = block.rows
                record["rows"] = block.rows
            record.update(steps=block.steps, offset=offset, shape=[len(block.steps), len(block.rows)])
            offset += 4 * len(block.values)
            line = dumps(record).encode() + b"\n"
            self._queue.append((line, None))
            self._queued += len(line)

    def _sync(self) -> None:
        try:
            self._lines.sync()
        except OSError as error:
            self._say_bad(error)

    # -- words ---------------------------------------------------------------------------------------------------------

    def _say_bad(self, error: OSError) -> None:
        if "disk" not in self._said:
            self._said.add("disk")
            self._err(f"osler: {reason(error)} ({self._run_dir}): going on in memory")

    def _say_fault(self, record: str, error: Exception) -> None:
        """Once for each journal: a fault of ours must not fill the user's terminal."""
        if "fault" not in self._said:
            self._said.add("fault")
            self._err(f"osler: a record ({record}) was lost to a fault of osler's own ({type(error).__name__})")

    @staticmethod
    def _err(line: str) -> None:
        """One line on the process's own stderr, not on what the script may have put in its place."""
        try:
            if sys.__stderr__ is not None:
                sys.__stderr__.write(" ".join(line.split()).encode("ascii", "backslashreplace").decode() + "\n")
                sys.__stderr__.flush()
        except Exception:
            pass


def _finding_line(finding: Finding) -> str:
    return dumps({"t": "finding", "key": finding.key, "time": time.time(), "finding": finding.to_dict()})


def _spoken(finding: Finding) -> str:
    """A finding on one line, for when stderr is all there is."""
    where = finding.where
    place = f" {where.file}:{where.line}" if where.file is not None else ""
    return f"osler: {finding.severity.label}[{finding.rule}]{place} {finding.message}"


def _little_endian(values: array[float]) -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


if TYPE_CHECKING:
    _is_a_sink: Sink = Journal("")
