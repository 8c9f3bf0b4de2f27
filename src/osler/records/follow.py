"""New findings of a run while it runs, for the live display."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from osler.core.finding import Finding
from osler.records import parse
from osler.records.folder import read_subject
from osler.records.merge import Labels
from osler.records.read import journals

_CHUNK = 4 * 1024 * 1024  # bytes of one journal read at one poll
_KINDS = (b'"start"', b'"awake"', b'"finding"', b'"note"')


@dataclass(slots=True)
class _Tail:
    path: Path
    pid: int
    offset: int = 0
    label: str | None = None
    rank: int | None = None
    keys: set[str] = field(default_factory=set)


class Follower:
    """Tails the journals in a run's folder. Nothing raises; a line that is not whole yet is read at the next poll.

    Args:
        run_dir: the run's folder.

    Attributes:
        awake: whether osler is in place in at least one process.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._tails: dict[str, _Tail] = {}
        self._labels: Labels | None = None
        self._notes: list[str] = []
        self._said: set[str] = set()
        self.awake = False

    def poll(self) -> list[tuple[str, Finding]]:
        """The findings since the last poll, each with the label of its process (`main`, `rank 1`, `pid 4711`)."""
        out: list[tuple[str, Finding]] = []
        for path, pid, _ in journals(self._run_dir):
            tail = self._tails.setdefault(path.name, _Tail(path, pid))
            for line in self._new_lines(tail):
                if not any(kind in line[:24] for kind in _KINDS):
                    continue  # curves are most of a journal, and nothing of them is shown live
                data = parse.record(line)
                if data is not None:
                    self._take(tail, data, out)
        return out

    def notes(self) -> list[str]:
        """The lines that the watcher had for the user since the last call, as far as `poll` has read; each once."""
        out, self._notes = self._notes, []
        return out

    def _new_lines(self, tail: _Tail) -> list[bytes]:
        try:
            with tail.path.open("rb") as f:
                f.seek(tail.offset)
                data = f.read(_CHUNK)
                end = data.rfind(b"\n") + 1
                while not end and len(data) >= _CHUNK and len(data) < parse.MAX_LINE:
                    more = f.read(_CHUNK)
                    if not more:
                        break
                    data += more
                    end = data.rfind(b"\n") + 1
        except OSError:
            return []
        if not end and len(data) >= parse.MAX_LINE:
            tail.offset += len(data)
        tail.offset += end
        return data[:end].splitlines()

    def _take(self, tail: _Tail, data: dict[str, object], out: list[tuple[str, Finding]]) -> None:
        kind = data["t"]
        if kind == "start":
            tail.rank = parse.whole(data.get("rank"))
            if tail.label is None:
                tail.label = self._label(tail.pid, parse.whole(data.get("ppid")), tail.rank)
        elif kind == "awake":
            self.awake = True
        elif kind == "note":
            note = parse.text(data.get("text"))
            if note is not None and note not in self._said:
                self._said.add(note)
                self._notes.append(note)
        elif kind == "finding":
            finding = parse.finding(data.get("finding"))
            key = parse.text(data.get("key"))
            if finding is not None and (key or finding.key) not in tail.keys:
                tail.keys.add(key or finding.key)
                if tail.label is None:
                    tail.label = self._label(tail.pid, None, None)
                out.append((tail.label, finding))

    def _label(self, pid: int, ppid: int | None, rank: int | None) -> str:
        if self._labels is None:
            self._labels = Labels(parse.whole(read_subject(self._run_dir).get("parent_pid")))
        return self._labels.name(pid, ppid, rank)
