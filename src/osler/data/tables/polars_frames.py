"""Polars frames, eager and lazy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.objects import from_objects
from osler.data.tables.source import Source, first_line


def from_polars(data: object, name: str | None) -> Source | None:
    """A source over a polars frame or series, None for anything else."""
    if not any(base.__module__.partition(".")[0] == "polars" for base in type(data).__mro__):
        return None
    import polars as pl

    if isinstance(data, pl.Series):
        data = data.to_frame(data.name or "value")
    if isinstance(data, pl.LazyFrame):
        return _lazy(data, name or "polars LazyFrame")
    if isinstance(data, pl.DataFrame):
        return _eager(data, name or "polars DataFrame")
    return None


def _eager(frame: Any, name: str) -> Source:
    notes = []
    whole: dict[int, pa.Array] = {}
    for i, series in enumerate(frame.get_columns()):
        if series.dtype.is_object():
            whole[i], note = from_objects(series.to_list())
            if note:
                notes.append(f"{name}: column {series.name!r} {note}")

    def part(i: int, start: int, size: int) -> pa.Array:
        return whole[i].slice(start, size) if i in whole else _polars_array(frame.to_series(i).slice(start, size))

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        for start in range(0, frame.height, size):
            yield pa.record_batch([part(i, start, size) for i in columns], names=[str(i) for i in columns])

    schema = pa.schema([(column, part(i, 0, 0).type) for i, column in enumerate(frame.columns)])
    return Source(name, schema, read, rows=frame.height, notes=notes)


def _lazy(frame: Any, name: str) -> Source:
    import polars as pl

    try:
        schema = frame.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{name} cannot be computed: {first_line(error)}") from None
    names = list(schema.names())
    types = _eager(pl.DataFrame(schema=schema), name).schema

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        chosen = frame.select([names[i] for i in columns])
        try:
            # before polars 1.34 there are no batches: the columns that are asked for are then held in memory
            batched = hasattr(chosen, "collect_batches")
            parts = chosen.collect_batches(chunk_size=size, maintain_order=True) if batched else [chosen.collect()]
            for part in parts:
                yield from _eager(part, name).batches(size=size)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{name} cannot be computed: {first_line(error)}") from None

    return Source(name, types, read)


def _polars_array(series: Any) -> pa.Array:
    import polars as pl

    if str(series.dtype) in ("Int128", "UInt128"):
        series = series.cast(pl.Float64)
    found = series.to_arrow()
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
