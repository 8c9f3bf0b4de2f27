"""What waits in a journal's memory: points, columns, counts. Cheap to add to, bounded when nothing is taken."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from osler.core.jsonable import dumps, word

MAX_POINTS = 50_000  # about 4 MB of Python numbers, over all curves
MAX_CELLS = 1_000_000  # 4 MB of float32, over all heat maps


@dataclass(slots=True)
class Block:
    """Columns of one heat map that have the same rows; `values` holds them one after the other, as float32."""

    series: str
    rows: tuple[str, ...]
    steps: list[int] = field(default_factory=list)
    values: array[float] = field(default_factory=lambda: array("f"))


class Buffer:
    """Points, columns and counts that are not written yet.

    Attributes:
        bytes: about how many bytes they will be on disk.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._points: dict[str, tuple[list[int], list[float]]] = {}
        self._open: dict[str, Block] = {}
        self._sealed: list[Block] = []
        self._again: dict[str, tuple[int, int | None]] = {}
        self._overhead: dict[str, object] | None = None

    def points(self, series: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """Add points; a surplus of steps or values is passed over."""
        new_steps, new_values = [int(s) for s in steps], [float(v) for v in values]
        n = min(len(new_steps), len(new_values))
        curve = self._points.setdefault(str(series), ([], []))
        curve[0].extend(new_steps[:n])
        curve[1].extend(new_values[:n])
        self.bytes += 28 * n

    def matrix(self, series: str, rows: Sequence[str], steps: Sequence[int], values: Sequence[Sequence[float]]) -> None:
        """Add columns; one that does not have a value for each row is passed over."""
        series, names = str(series), tuple(rows)
        block = self._open.get(series)
        if block is None or block.rows != names:
            if block is not None:
                self._sealed.append(block)
            block = self._open[series] = Block(series, tuple(map(str, names)))
            self.bytes += 100 + sum(map(len, block.rows))
        for step, column in zip(steps, values, strict=False):
            cells = array("f", column)
            if len(cells) == len(block.rows):
                block.steps.append(int(step))
                block.values.extend(cells)
                self.bytes += 4 * len(cells) + 8

    def again(self, key: str, count: int, last_step: int | None) -> None:
        """Remember the latest count of a finding."""
        if key not in self._again:
            self.bytes += len(key) + 50
        self._again[key] = (int(count), None if last_step is None else int(last_step))

    def overhead(self, figures: Mapping[str, object]) -> None:
        """Remember the latest figures."""
        if self._overhead is None:
            self.bytes += 200
        self._overhead = dict(figures)

    def take_lines(self) -> Iterator[bytes]:
        """The journal lines of everything but heat maps; they leave the buffer."""
        again, self._again = self._again, {}
        points, self._points = self._points, {}
        overhead, self._overhead = self._overhead, None
        self.bytes = sum(4 * len(b.values) for b in self._blocks())
        for key, (count, last_step) in again.items():
            yield _line({"t": "again", "key": key, "count": count, "last_step": last_step})
        for series, (steps, values) in points.items():
            # Written by hand: this is the bulk of a journal, and a general encoder takes five times as long.
            numbers = ",".join([repr(v) if math.isfinite(v) else f'"{word(v)}"' for v in values])
            yield f'{{"t":"points","series":{dumps(series)},"steps":{steps},"values":[{numbers}]}}\n'.encode()
        if overhead is not None:
            yield _line({"t": "overhead", "figures": overhead})

    def take_blocks(self) -> list[Block]:
        """The heat map columns, oldest first; they leave the buffer."""
        blocks = [b for b in self._blocks() if b.steps]
        self._sealed, self._open = [], {}
        self.bytes -= sum(4 * len(b.values) for b in blocks)
        return blocks

    def put_back(self, blocks: list[Block]) -> None:
        """Columns that could not be written: they come before those that are added from now on."""
        self._sealed = blocks + self._sealed
        self.bytes += sum(4 * len(b.values) for b in blocks)

    def thin(self) -> int:
        """Halve curves and heat maps while they are too large; returns how many points and columns were let go."""
        gone = 0
        while (n := sum(len(steps) for steps, _ in self._points.values())) > MAX_POINTS:
            if n == len(self._points):
                self._points.clear()
                gone += n
            for steps, values in self._points.values():
                gone += len(steps) // 2
                del steps[1::2], values[1::2]
        while self._cells() > MAX_CELLS:
            self._sealed = [b for b in self._sealed if b.steps]
            for block in self._blocks():
                gone += _halve(block)
        self.bytes = 0  # the limits above count now; a full buffer must not mean a try at every point
        return gone

    def _cells(self) -> int:
        return sum(len(b.values) for b in self._blocks())

    def _blocks(self) -> Iterator[Block]:
        yield from self._sealed
        yield from self._open.values()


def _halve(block: Block) -> int:
    """Drop every second column; a block with one column loses it."""
    width, before = len(block.rows), len(block.steps)
    if before == 1:
        block.steps.clear()
        del block.values[:]
        return 1
    del block.steps[1::2]
    thinned = array("f")
    for i in range(0, before, 2):
        thinned.extend(block.values[i * width : (i + 1) * width])
    block.values = thinned
    return before - len(block.steps)


def _line(record: Mapping[str, object]) -> bytes:
    return dumps(record).encode() + b"\n"
