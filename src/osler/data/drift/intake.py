"""Batches of a stream, brought to the columns that are watched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from osler.data.drift.panes import Ints, stamps
from osler.data.drift.profile import Profile
from osler.data.need import DataError
from osler.data.tables import open_source


class Intake:
    """Reads batches of any form.

    Attributes:
        reference: whose columns are wanted.
        timed: whether every row needs a time.
        time: the column that holds it; None: it comes with the batch.
        unusable: columns → rows in which they were absent or of another kind; these count as missing.
    """

    def __init__(self, reference: Profile, timed: bool, time: str | None) -> None:
        self.reference = reference
        self.timed = timed
        self.time = time
        self.unusable: dict[str, int] = {}

    def batches(self, batch: Any, time: Any = None) -> Iterator[tuple[pa.RecordBatch, Ints | None]]:
        """Record batches of the watched columns in the reference's order, with the time of every row where it is needed.

        Args:
            batch: whatever `open_source` takes.
            time: one time for all rows or one a row; None: the column `time` of the batch.

        Raises:
            DataError: the batch cannot be read, has none of the columns, or no times where they are needed.
        """
        source = open_source(batch, None if isinstance(batch, (str, Path)) else "batch")
        usable = list(self.reference.matching(source).columns)
        if not usable:
            raise DataError(f"{source.name} has none of the columns that are watched")
        if self.timed and time is None and self.time is None:
            raise DataError("windows of time need times: pass time= with the batch, or name its column when you begin")
        done = 0
        names = usable
        if self.timed and time is None and self.time is not None and source.column(self.time).name not in usable:
            names = [*usable, self.time]
        given = stamps(time, source.rows) if self.timed and time is not None and source.rows is not None else None
        for part in source.batches(names):
            at = None
            if given is not None:
                at = given[done : done + part.num_rows]
            elif self.timed:
                at = stamps(part.column(self.time) if time is None else time, part.num_rows)
            done += part.num_rows
            yield self._aligned(part, usable), at

    def _aligned(self, batch: pa.RecordBatch, usable: list[str]) -> pa.RecordBatch:
        """The batch with all watched columns; those that cannot be used are null."""
        if len(usable) == len(self.reference.columns):
            return batch.select(usable)
        have = set(usable)
        for name in self.reference.columns:
            if name not in have:
                self.unusable[name] = self.unusable.get(name, 0) + batch.num_rows
        arrays = [batch.column(name) if name in have else pa.nulls(batch.num_rows) for name in self.reference.columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.reference.columns))
