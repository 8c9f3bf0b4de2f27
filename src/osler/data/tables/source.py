"""A source: named columns that are read in batches, wherever they come from."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.kinds import Column, column_of, normalise

BATCH = 262_144
"""Most rows in a batch unless told otherwise: 2 MiB for a column of float64."""
_BATCH_BYTES = 32 << 20
_FEWEST = 16_384

Reader: TypeAlias = Callable[[Sequence[int], int], Iterator[pa.RecordBatch]]
"""Reads the columns at these positions, in this order, in batches of about that many rows."""


class Source:
    """Columns that are read in batches.

    Attributes:
        name: for messages: the path as it was given, or the kind of frame.
        columns: in the order of the data. Names are unique: the second `x` is called `x.1`, as in `pandas.read_csv`.
        rows: how many, None where that is known only after reading.
        repeatable: whether `batches` can be called again; not so for a stream.
        notes: what was done to make the data readable, one sentence each: renamed columns, mixed objects, filled gaps.
        keeps: what must live as long as the source does: a temporary file.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        read: Reader,
        *,
        rows: int | None = None,
        repeatable: bool = True,
        notes: Sequence[str] = (),
        hints: dict[str, str] | None = None,
    ) -> None:
        """A source over a reader.

        Args:
            name: for messages.
            schema: what the reader gives, column by column; names may be double.
            read: reads columns by position.
            rows: how many, where known.
            repeatable: whether `read` may be called again.
            notes: sentences for the user.
            hints: what to say of a name that is asked for and is no column (the index of a frame).

        Raises:
            DataError: there is no column at all.
        """
        if not len(schema):
            raise DataError(f"{name} has no columns")
        names, renamed = unique_names(schema.names)
        self.name = name
        self.columns: tuple[Column, ...] = tuple(column_of(n, f.type) for n, f in zip(names, schema))
        self.rows = rows
        self.repeatable = repeatable
        self.notes: tuple[str, ...] = (*notes, *(f"{name}: {note}" for note in renamed))
        self._read = read
        self._position = {column.name: i for i, column in enumerate(self.columns)}
        self._hints = hints or {}
        self._spent = False
        self.keeps: object = None

    def __repr__(self) -> str:
        """`<Source 'today.parquet': 12 columns, 40000 rows>`."""
        rows = "rows not counted" if self.rows is None else f"{self.rows} rows"
        return f"<Source {self.name!r}: {len(self.columns)} columns, {rows}>"

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return name in self._position

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema: unique names, normal types."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    def column(self, name: str) -> Column:
        """The column of this name.

        Raises:
            DataError: there is none; the message names the closest ones.
        """
        if name in self._position:
            return self.columns[self._position[name]]
        if name in self._hints:
            raise DataError(f"{self.name}: {self._hints[name]}")
        raise DataError(f"{self.name} has no column {name!r}{closest(name, self.names)}")

    def batches(self, columns: Sequence[str] | None = None, size: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, in batches of at most `size` rows; only these columns are read, in this order.

        Batches may be smaller than `size`, and none is empty; without any column there are no batches. Types are those of `columns`, names those asked for.

        Args:
            columns: names; None reads all of them.
            size: most rows in a batch; what is held in memory grows with it. None: 262,144, and fewer where there are
                many columns, so that a batch of float64 takes 32 MiB (16,384 rows at the least).

        Raises:
            DataError: an unknown column; a stream read for the second time; data that turn out to be unreadable.
        """
        chosen = list(self.names if columns is None else columns)
        if size is None:
            size = min(BATCH, max(_FEWEST, _BATCH_BYTES // (8 * max(1, len(chosen)))))
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        wanted = [self._position[self.column(name).name] for name in chosen]
        if len(set(wanted)) < len(wanted):
            raise DataError(f"{self.name}: a column is asked for twice in {', '.join(map(repr, chosen))}")
        if not wanted:
            return iter(())
        if not self.repeatable:
            if self._spent:
                raise DataError(
                    f"{self.name} is a stream and can be read once only: save it to a file, or pass a table"
                )
            self._spent = True
        schema = pa.schema([(self.columns[i].name, self.columns[i].type) for i in wanted])
        return _normal(self._read(wanted, size), schema, size)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """These columns (None: all) with all their rows in memory."""
        chosen = list(self.names if columns is None else columns)
        schema = pa.schema([(name, self.column(name).type) for name in chosen])
        return pa.Table.from_batches(self.batches(chosen), schema)


def from_table(table: pa.Table, name: str, notes: Sequence[str] = (), hints: dict[str, str] | None = None) -> Source:
    """A source over an Arrow table."""

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        yield from table.select(list(columns)).to_batches(max_chunksize=size)

    return Source(name, table.schema, read, rows=table.num_rows, notes=notes, hints=hints)


def _normal(batches: Iterator[pa.RecordBatch], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        if batch.schema != schema or batch.schema.metadata:
            batch = pa.record_batch([normalise(column) for column in batch.columns], schema=schema)
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


def closest(name: str, among: Sequence[str], limit: int = 3) -> str:
    """`; did you mean 'age', 'ages'?`, or the columns there are where none is alike and they are few, or nothing."""
    lower = {n.lower(): n for n in reversed(among)}
    alike = [lower[n] for n in difflib.get_close_matches(name.lower(), list(lower), n=limit)]
    if alike:
        return f"; did you mean {', '.join(map(repr, alike))}?"
    if 0 < len(among) <= 12:
        return f"; it has {', '.join(map(repr, among))}"
    return ""


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names made unique as `pandas.read_csv` does it (`x`, `x.1`, …), and a note for every one that was changed."""
    taken = set(names)
    seen: dict[str, int] = {}
    out: list[str] = []
    notes: list[str] = []
    for name in names:
        if name not in seen:
            seen[name] = 0
            out.append(name)
            continue
        while True:
            seen[name] += 1
            fresh = f"{name}.{seen[name]}"
            if fresh not in taken:
                break
        taken.add(fresh)
        out.append(fresh)
        notes.append(f"the name {name!r} occurs more than once; its column {len(out)} is called {fresh!r} here")
    return out, notes


def first_line(error: BaseException) -> str:
    """The first line of an error's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
