"""Delta tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from osler.data.need import DataError, need
from osler.data.tables.files import assemble
from osler.data.tables.parquet import ParquetPart
from osler.data.tables.source import Source, first_line


def from_delta(path: Path, name: str) -> Source:
    """A source over the newest version of a Delta table.

    Plain tables are read file by file. Where the table uses features that this way does not know (deletion vectors,
    renamed columns), deltalake's own engine reads it.

    Raises:
        DataError: deltalake is not installed, or the table cannot be opened.
    """
    deltalake = need("deltalake", "data", f"{name} is a Delta table; reading it")
    try:
        table = deltalake.DeltaTable(str(path))
        rows = table.count()
    except deltalake.exceptions.DeltaError as error:
        raise DataError(f"{name} is no readable Delta table: {first_line(error)}") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {first_line(error)}") from None
    try:
        dataset = table.to_pyarrow_dataset()
    except deltalake.exceptions.DeltaProtocolError:
        return _by_query(deltalake, table, name, rows)
    parts, constants = [], []
    for fragment in dataset.get_fragments():
        parts.append(ParquetPart(fragment.path, f"{name}/{fragment.path}", fragment.filesystem))
        keys = pads.get_partition_keys(fragment.partition_expression)
        constants.append({key: pa.scalar(value) for key, value in keys.items() if key not in parts[-1].schema.names})
    return assemble(parts, constants, dataset.schema, name)


def _by_query(deltalake: Any, table: Any, name: str, rows: int) -> Source:
    builder = deltalake.QueryBuilder().register("t", table)

    def stream(what: str) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(builder.execute(f"SELECT {what} FROM t"))

    schema = stream("*").schema
    names = schema.names

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        quoted = [names[i].replace('"', '""') for i in columns]
        what = ", ".join(f'"{column}"' for column in quoted) or "1"
        for batch in stream(what):
            yield batch.select(list(range(len(columns))))

    return Source(name, schema, read, rows=rows)
