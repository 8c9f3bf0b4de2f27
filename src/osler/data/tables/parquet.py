"""Parquet files, read column chunk by column chunk so that memory does not grow with the row groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from osler.data.need import DataError
from osler.data.tables.source import unique_names

_BUFFER = 1 << 18
"""Bytes that are read at a time of each column chunk; without it a chunk is read whole."""


class ParquetPart:
    """One parquet file."""

    def __init__(self, path: Path | str, name: str | None = None, filesystem: Any = None) -> None:
        """Reads the footer.

        Args:
            path: where it is.
            name: for messages; by default the path.
            filesystem: an Arrow filesystem in which the path is; None for the local one.

        Raises:
            DataError: it is damaged, cut short, or cannot be opened.
        """
        self.path, self.name, self._filesystem = path, name or str(path), filesystem
        with self._open() as file:
            schema, self.rows = file.schema_arrow, file.metadata.num_rows
        hidden = _index_columns(schema)
        names, renamed = unique_names(schema.names)
        self.notes: list[str] = [f"{self.name}: {note}" for note in renamed]
        kept = [i for i, field in enumerate(schema) if field.name not in hidden]
        self.schema = pa.schema([(names[i], schema.field(i).type) for i in kept])
        # the name in the file, and which of the columns of that name it is
        self._original = {names[i]: (schema.names[i], schema.names[:i].count(schema.names[i])) for i in kept}

    def _open(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(
                self.path, filesystem=self._filesystem, pre_buffer=False, buffer_size=_BUFFER, memory_map=False
            )
        except PermissionError:
            raise DataError(f"{self.name}: no permission to read it") from None
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{self.name} is no complete parquet file: {_reason(error)}") from None

    def read(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """These columns in this order."""
        originals = [self._original[name] for name in columns]
        wanted = list(dict.fromkeys(name for name, _ in originals))
        with self._open() as file:
            try:
                for batch in file.iter_batches(batch_size=size, columns=wanted, use_threads=True):
                    # Arrow also gives what shares the name, and the part of a struct `a` that the name `a.b` means
                    there = batch.schema.names
                    chosen = [[i for i, n in enumerate(there) if n == name][nth] for name, nth in originals]
                    yield batch.select(chosen)
            except (pa.ArrowException, OSError) as error:
                raise DataError(f"{self.name} is damaged: {_reason(error)}") from None


def _index_columns(schema: pa.Schema) -> set[str]:
    """Columns that hold the unnamed index of a pandas frame: it numbers the rows and is no column of the data."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = described.get("index_columns", [])
        return {name for name in index if isinstance(name, str) and name.startswith("__index_level_")}
    except (ValueError, AttributeError, TypeError):
        return set()


def _reason(error: BaseException) -> str:
    text = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if "magic bytes not found in footer" in text or "too small" in text or "file size" in text:
        return "its end is missing; was it still being written, or cut off in a copy?"
    return text.rstrip(".")
