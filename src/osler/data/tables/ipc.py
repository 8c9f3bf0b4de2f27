"""Arrow IPC files and streams, Feather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.formats import Format
from osler.data.tables.source import Source, unique_names


class IpcPart:
    """One Arrow file or stream, read record batch by record batch."""

    def __init__(self, path: Path, kind: Format, name: str | None = None) -> None:
        """Reads the schema.

        Raises:
            DataError: it is damaged or cannot be opened.
        """
        self.path, self.name, self._kind = path, name or str(path), kind
        if kind is Format.FEATHER_1:
            raise DataError(f"{self.name} is Feather version 1, an old format: write it again with to_feather()")
        self.rows: int | None = None
        with self._guard(), pa.OSFile(str(path)) as file:
            schema = (pa.ipc.open_stream(file) if kind is Format.ARROW_STREAM else pa.ipc.open_file(file)).schema
        names, renamed = unique_names(schema.names)
        self.notes: list[str] = [f"{self.name}: {note}" for note in renamed]
        self.schema = pa.schema([(name, field.type) for name, field in zip(names, schema)])

    def read(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """These columns in this order."""
        positions = [self.schema.get_field_index(name) for name in columns]
        kept = sorted(positions)
        order = [kept.index(i) for i in positions]
        options = pa.ipc.IpcReadOptions(included_fields=kept, use_threads=False) if kept else pa.ipc.IpcReadOptions()
        with self._guard(), pa.OSFile(str(self.path)) as file:
            for batch in self._batches(file, options):
                yield batch.select(order) if kept else batch

    def _batches(self, file: Any, options: Any) -> Iterator[pa.RecordBatch]:
        if self._kind is Format.ARROW_STREAM:
            yield from pa.ipc.open_stream(file, options=options)
            return
        reader = pa.ipc.open_file(file, options=options)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)

    def _guard(self) -> _Guard:
        return _Guard(self.name)


class _Guard:
    """Turns what Arrow raises on a damaged file into one line."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PermissionError):
            raise DataError(f"{self._name}: no permission to read it") from None
        if isinstance(error, (pa.ArrowException, OSError)):
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise DataError(f"{self._name} is a damaged or unfinished Arrow file: {text}") from None


def from_stream(file: Any, name: str) -> Source:
    """A source over an open Arrow stream, which can be read once."""
    with _Guard(name):
        reader = pa.ipc.open_stream(file)

    def read(columns: Sequence[int], size: int) -> Iterator[pa.RecordBatch]:
        with _Guard(name):
            for batch in reader:
                yield batch.select(list(columns))

    return Source(name, reader.schema, read, repeatable=False)
