"""One pass over a table: what is missing where, and a uniform sample of the rows for everything that needs values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from osler.core.progress import Progress
from osler.data.missing.columns import Bools, Raw, from_arrow
from osler.data.need import DataError
from osler.data.tables import Kind, Source, floats, validity

# What can be imputed and judged by value; the rest is only counted.
_VALUES = (Kind.NUMBER, Kind.INTEGER, Kind.BOOLEAN, Kind.CATEGORY, Kind.NULL)


@dataclass(slots=True)
class Holes:
    """The missing values of one column.

    Attributes:
        count: how many.
        longest: rows of the longest run of missing values.
        start: 0-based row at which that run begins; -1 where nothing is missing.
    """

    count: int = 0
    longest: int = 0
    start: int = -1
    _run: int = 0
    _rows: int = 0

    def add(self, missing: Bools) -> None:
        """Count the next rows (n,)."""
        self.count += int(missing.sum())
        edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8)))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist()):
            joined = self._run if begin == 0 else 0
            if end - begin + joined > self.longest:
                self.longest, self.start = end - begin + joined, self._rows + begin - joined
        if len(missing):
            tail = int(np.argmin(missing[::-1])) if not missing.all() else len(missing)
            self._run = tail + (self._run if tail == len(missing) else 0)
        self._rows += len(missing)


@dataclass(frozen=True, slots=True)
class Scan:
    """What one pass found.

    Attributes:
        name: of the source, for messages.
        rows: of the whole table.
        holes: column → its missing values, over all rows.
        kinds: column → its kind.
        columns: sampled values of the columns that hold numbers or categories.
        positions: (k,) int64, the 0-based rows of the sample, ascending.
    """

    name: str
    rows: int
    holes: dict[str, Holes]
    kinds: dict[str, Kind]
    columns: list[Raw]
    positions: npt.NDArray[np.int64]

    def share(self, name: str) -> float:
        """Share of the rows in which a column is missing."""
        return self.holes[name].count / self.rows

    def raw(self, name: str) -> Raw:
        """The sampled values of a column."""
        return next(c for c in self.columns if c.name == name)


def scan(source: Source, columns: Sequence[str], sample_rows: int, progress: Progress, seed: int = 0) -> Scan:
    """Read a source once.

    Args:
        source: the table.
        columns: what to read.
        sample_rows: rows of the sample, drawn uniformly (those with the smallest of random keys), or all where there are
            fewer.
        progress: told the rows read.

    Raises:
        DataError: the source has no rows.
    """
    random = np.random.default_rng(seed)
    holes = {name: Holes() for name in columns}
    kinds = {name: source.column(name).kind for name in columns}
    valued = [name for name in columns if kinds[name] in _VALUES]
    kept: pa.Table | None = None
    keys = np.empty(0)
    places = np.empty(0, np.int64)
    rows = 0
    for batch in source.batches(list(columns)):
        for name in columns:
            array = batch.column(batch.schema.get_field_index(name))
            holes[name].add(np.isnan(floats(array)) if kinds[name] is Kind.NUMBER else ~validity(array))
        new = random.random(batch.num_rows)
        every = np.concatenate([keys, new])
        where = np.concatenate([places, rows + np.arange(batch.num_rows)])
        rows += batch.num_rows
        part = pa.Table.from_batches([batch]).select(valued)
        joined = part if kept is None else pa.concat_tables([kept, part], promote_options="permissive")
        if len(every) > sample_rows:
            chosen = np.sort(np.argpartition(every, sample_rows - 1)[:sample_rows])
            joined = joined.take(chosen).combine_chunks()
            every, where = every[chosen], where[chosen]
        kept, keys, places = joined, every, where
        progress(f"reading {source.name}", rows, source.rows)
    if not rows or kept is None:
        raise DataError(f"{source.name} has no rows")
    raws = [from_arrow(name, kept.column(name)) for name in valued]
    return Scan(source.name, rows, holes, kinds, raws, places)
