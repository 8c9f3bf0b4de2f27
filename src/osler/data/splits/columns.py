"""Which columns of two sources can be compared, row sampling, and reading chosen rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress
from osler.data.splits.hashes import cast_pairs, codes_of
from osler.data.tables import Kind, Source

Rows = npt.NDArray[np.int64]

_FAMILY = {
    Kind.NUMBER: "numbers",
    Kind.INTEGER: "numbers",
    Kind.BOOLEAN: "numbers",
    Kind.CATEGORY: "text",
    Kind.TIME: "times",
    Kind.DURATION: "durations",
    Kind.BINARY: "bytes",
    Kind.NESTED: "nested values",
}


@dataclass(frozen=True, slots=True)
class Shared:
    """Columns that both sides have and that can be compared.

    Attributes:
        names: in training's order.
        kinds: kind of each, training's (evaluation's where training's column is all null).
        casts: columns compared in a narrower float type, because one side is stored in it.
        apart: columns of both sides whose types cannot be compared, each with the reason.
        only: names that one side alone has.
    """

    names: tuple[str, ...]
    kinds: dict[str, Kind]
    casts: dict[str, pa.DataType]
    apart: dict[str, str]
    only: tuple[str, ...]


def shared_columns(train: Source, eval_: Source, chosen: Sequence[str] | None = None) -> Shared:
    """Match the columns of both sides by name.

    Args:
        train, eval_: the two sides.
        chosen: only these; None: all that both have.

    Raises:
        DataError: a chosen column is missing on a side.
    """
    left = {c.name: c for c in train.columns}
    right = {c.name: c for c in eval_.columns}
    if chosen is not None:
        left = {name: train.column(name) for name in chosen}
        right = {name: eval_.column(name) for name in chosen}
    names: list[str] = []
    kinds: dict[str, Kind] = {}
    apart: dict[str, str] = {}
    for name, column in left.items():
        if name not in right:
            continue
        a, b = column.kind, right[name].kind
        if Kind.NULL not in (a, b) and _FAMILY[a] != _FAMILY[b]:
            apart[name] = f"{_FAMILY[a]} in training, {_FAMILY[b]} in evaluation"
            continue
        names.append(name)
        kinds[name] = b if a is Kind.NULL else a
    casts = cast_pairs({n: left[n].type for n in names}, {n: right[n].type for n in names})
    return Shared(tuple(names), kinds, casts, apart, tuple(sorted(left.keys() ^ right.keys())))


def read(
    source: Source, names: Sequence[str], shared: Shared, progress: Progress, what: str, size: int = 131_072
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of these columns with the position of their first row, cast for comparison."""
    start = 0
    casts = {n: t for n, t in shared.casts.items() if n in names}
    for batch in source.batches(list(names), size):
        if casts:
            batch = pa.record_batch(
                [batch.column(n).cast(casts[n]) if n in casts else batch.column(n) for n in names], names=list(names)
            )
        yield start, batch
        start += batch.num_rows
        progress(what, start, source.rows)


def take(source: Source, names: Sequence[str], shared: Shared, rows: Rows, progress: Progress, what: str) -> pa.Table:
    """Chosen rows, in the order of `rows`, which are ascending and distinct."""
    parts: list[pa.RecordBatch] = []
    schema: pa.Schema | None = None
    for start, batch in read(source, names, shared, progress, what):
        schema = batch.schema
        low, high = np.searchsorted(rows, [start, start + batch.num_rows])
        if high > low:
            parts.append(batch.take(pa.array(rows[low:high] - start)))
        if high >= rows.size:
            break
    return pa.Table.from_batches(parts, schema)


class Reservoir:
    """A uniform sample of the rows of a stream (bottom-k of random priorities), in the order of the stream."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._rng = np.random.default_rng(seed)
        self._parts: list[pa.Table] = []
        self._keys: list[npt.NDArray[np.float64]] = []
        self._limit = 1.0
        self._held = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Offer rows."""
        keys = self._rng.random(batch.num_rows)
        chosen = np.flatnonzero(keys < self._limit)
        if not chosen.size:
            return
        self._parts.append(pa.Table.from_batches([batch.take(pa.array(chosen))]))
        self._keys.append(keys[chosen])
        self._held += chosen.size
        if self._held > 2 * self._size:
            self._shrink()

    def table(self) -> pa.Table | None:
        """The sample; None where there was no row."""
        if self._held > self._size:
            self._shrink()
        return self._parts[0] if len(self._parts) == 1 else pa.concat_tables(self._parts) if self._parts else None

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        self._limit = float(np.partition(keys, self._size - 1)[self._size - 1])
        kept = np.flatnonzero(keys <= self._limit)[: self._size]
        table = pa.concat_tables(self._parts).take(pa.array(kept))
        self._parts, self._keys, self._held = [table], [keys[kept]], kept.size


def identifying(train: Source, eval_: Source, shared: Shared, least: int = 50) -> tuple[str, ...]:
    """Columns that number the rows: whole numbers, text or times without a repeat in the first batch of either side.

    A copy of a row under a new number is still a copy, so such columns stay out of the comparison of contents.
    """
    kinds = (Kind.INTEGER, Kind.CATEGORY, Kind.TIME)
    names = [n for n in shared.names if shared.kinds[n] in kinds]
    if not names:
        return ()
    heads = [next(iter(source.batches(names, 65_536)), None) for source in (train, eval_)]
    if any(head is None or head.num_rows < least for head in heads):
        return ()
    return tuple(name for name in names if all(_distinct(head.column(name)) for head in heads if head is not None))


def _distinct(array: pa.Array) -> bool:
    codes, classes = codes_of(array)
    return not array.null_count and np.unique(codes ^ classes.astype(np.uint64)).size == codes.size
