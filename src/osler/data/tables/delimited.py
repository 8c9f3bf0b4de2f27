"""CSV, TSV and their kin: plain or compressed, in blocks, with types that hold for the whole file.

Arrow infers the types of a text file from its first block and fails when a later block disagrees. Here a file is read
through once when it is opened: a column that turns out to be wider than it looked (integers, then a fraction; nothing,
then text) is widened and the reading starts again. What follows never meets a surprise, and ragged rows are reported
before any work is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from osler.data.need import DataError
from osler.data.tables.dialect import Dialect, dialect_of
from osler.data.tables.source import unique_names
from osler.data.tables.textual import inferred, wider

_SCAN_BLOCK = 16 << 20
_READ_BLOCK = 4 << 20
KEEP = 128 << 20
"""A file whose columns take no more than this is kept in memory once it is read: 128 MiB."""

_PATIENCE = 6
"""Readings after which a file that keeps surprising is read as text."""

_CONVERSION = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to [^:]+: (?:invalid value|expected .* in) '(.*)'", re.S
)
_ENCODING = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?.*invalid UTF8", re.S)
_RAGGED = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


class TextPart:
    """One text file with columns.

    Attributes:
        name: the path as given.
        schema: names and types that hold for every row.
        rows: how many.
        notes: what was done to read it.
    """

    def __init__(self, path: Path, name: str | None = None, keep: int = KEEP) -> None:
        """Reads the file through once.

        Args:
            path: where it is.
            name: for messages.
            keep: bytes of columns up to which they are kept in memory.

        Raises:
            DataError: it is empty, ragged, not UTF-8 or cannot be opened.
        """
        self.path, self.name, self._keep = path, name or str(path), keep
        self._dialect = dialect_of(path, self.name)
        labels = [label or f"Unnamed: {i}" for i, label in enumerate(self._dialect.header)]
        self._names, renamed = unique_names(labels)
        self.notes: list[str] = [f"{self.name}: {note}" for note in (*self._dialect.notes, *renamed)]
        self._types: dict[str, pa.DataType] = {}
        self._table: pa.Table | None = None
        self._numbered = not self._dialect.header[0]
        self.rows: int = 0
        self._settle()
        names = self._names
        if self._numbered and len(names) > 1:
            names = names[1:]
            self.notes.append(
                f"{self.name}: the first column has no name and numbers the rows: taken for the index of a saved frame and left out"
            )
        self.schema = pa.schema([(name, self._types[name]) for name in names])

    def _settle(self) -> None:
        """Read, widening types until the whole file fits them."""
        attempts = 0
        while True:
            try:
                self._scan()
            except pa.ArrowException as error:
                self._widen(str(error))
            else:
                return
            attempts += 1
            if attempts == _PATIENCE:
                self._read_as_text()

    def _read_as_text(self) -> None:
        """Types from one reading of everything as text: slower than one that is widened a few times, not than many."""
        types = dict.fromkeys(self._names, pa.null())
        self._types = dict.fromkeys(self._names, pa.string())
        try:
            for batch in self._reader(None, _SCAN_BLOCK):
                for name, array in zip(self._names, batch.columns):
                    if not pa.types.is_string(types[name]):
                        cells = array.drop_null().unique().to_pylist()
                        types[name] = wider(types[name], inferred(cells, self._dialect.decimal))
        except pa.ArrowException as error:
            raise DataError(self._complaint(str(error))) from None
        self._types = types

    def _scan(self) -> None:
        batches: list[pa.RecordBatch] | None = []
        size = self.rows = 0
        if self._dialect.bare:
            self._numbered = False
            self._types = dict.fromkeys(self._names, pa.null())
            self._table = pa.schema(list(self._types.items())).empty_table()
            return
        self._numbered = not self._dialect.header[0]
        reader = self._reader(None, _SCAN_BLOCK)
        for batch in reader:
            if self._numbered:
                self._numbered = _counts_on(batch.column(0), self.rows)
            self._text_only(batch)
            self.rows += batch.num_rows
            size += batch.nbytes
            if batches is not None and size <= self._keep:
                batches.append(batch)
            else:
                batches = None
        self._types = {field.name: field.type for field in reader.schema}
        self._table = pa.Table.from_batches(batches, reader.schema) if batches is not None else None

    def _text_only(self, batch: pa.RecordBatch) -> None:
        """Arrow takes what is not UTF-8 for binary."""
        for column, array in zip(self._names, batch.columns):
            if not pa.types.is_binary(array.type):
                continue
            for i, value in enumerate(array.to_pylist()):
                try:
                    (value or b"").decode()
                except UnicodeDecodeError:
                    row = self.rows + i + (1 if self._dialect.headless else 2)
                    raise DataError(self._not_utf8(column, str(row))) from None

    def _not_utf8(self, column: str, row: str | None) -> str:
        where = f", row {row}" if row else ""
        return f"{self.name}{where}: column {column!r} is not UTF-8: convert the file (iconv -f cp1252 -t utf-8)"

    def _widen(self, message: str) -> None:
        if found := _CONVERSION.search(message):
            column = self._names[int(found[1])]
            with self._open() as stream:
                # the types of the columns that are not forced yet are those of the first block
                first = self._csv_reader(stream, None, _SCAN_BLOCK, threads=False).schema
            before = self._types.get(column, first.field(column).type)
            after = wider(before, inferred([found[2]], self._dialect.decimal))
            self._types[column] = pa.string() if after == before else after
            return
        raise DataError(self._complaint(message))

    def _complaint(self, message: str) -> str:
        if "Row #" not in message and ("Expected" in message or "UTF8" in message):
            try:
                with self._open() as stream:
                    for _ in self._csv_reader(stream, None, _SCAN_BLOCK, threads=False):
                        pass
            except pa.ArrowException as error:
                message = str(error)
        if found := _RAGGED.search(message):
            row = f"row {found[1]}" if found[1] else "a row"
            return f"{self.name}: {row} has {found[3]} fields where the header has {found[2]}: mend or remove it"
        if found := _ENCODING.search(message):
            return self._not_utf8(self._names[int(found[1])], found[2])
        if "straddling" in message or "block size" in message:
            return f"{self.name}: a row is longer than {_SCAN_BLOCK >> 20} MiB: a quotation mark is not closed"
        # what Arrow quotes is a value of the user's
        return f"{self.name} cannot be read: {message.strip().partition(chr(39))[0].splitlines()[0]}"

    def retype(self, types: dict[str, pa.DataType]) -> None:
        """Read these columns in these types from now on; each must be as wide as the column's own."""
        changed = {name: type_ for name, type_ in types.items() if self._types.get(name) != type_}
        if changed:
            self._types.update(changed)
            self._table = None
            self.schema = pa.schema([(field.name, self._types[field.name]) for field in self.schema])

    def read(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """These columns in this order."""
        if self._table is not None:
            yield from self._table.select(list(columns)).to_batches(max_chunksize=size)
            return
        block = max(64 << 10, min(_READ_BLOCK, size * 16 * len(self._names)))
        try:
            for batch in self._reader(list(columns), block):
                # without a column to convert Arrow would convert all of them
                yield batch.select(list(columns))
        except pa.ArrowException as error:
            raise DataError(self._complaint(str(error))) from None

    def _reader(self, columns: list[str] | None, block: int) -> Any:
        return self._csv_reader(self._open(), columns, block, threads=True)

    def _open(self) -> pa.NativeFile:
        try:
            return pa.input_stream(str(self.path), compression=self._dialect.compression)
        except PermissionError:
            raise DataError(f"{self.name}: no permission to read it") from None
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}") from None

    def _csv_reader(self, stream: pa.NativeFile, columns: list[str] | None, block: int, threads: bool) -> Any:
        dialect: Dialect = self._dialect
        try:
            return csv.open_csv(
                stream,
                read_options=csv.ReadOptions(
                    block_size=block,
                    use_threads=threads,
                    column_names=self._names,
                    skip_rows_after_names=0 if dialect.headless else 1,
                    encoding=dialect.encoding,
                ),
                parse_options=csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types=self._types,
                    include_columns=columns,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    decimal_point=dialect.decimal,
                ),
            )
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error}") from None


def agree(parts: Sequence[TextPart], what: str) -> list[str]:
    """Give the same column the same type in all files, the widest that is found; and notes where that makes it text."""
    types: dict[str, pa.DataType] = {}
    for part in parts:
        for field in part.schema:
            types[field.name] = wider(types[field.name], field.type) if field.name in types else field.type
    notes = []
    for name, type_ in types.items():
        if pa.types.is_string(type_):
            for part in parts:
                own = part.schema.field(name).type if name in part.schema.names else type_
                if own != type_ and not pa.types.is_null(own):
                    notes.append(
                        f"{what}: column {name!r} is {own} in {part.name} and text elsewhere; it is read as text"
                    )
                    break
    for part in parts:
        part.retype({name: type_ for name, type_ in types.items() if name in part.schema.names})
    return notes


def _counts_on(column: pa.Array, start: int) -> bool:
    """Whether the column is start, start + 1, …"""
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    return bool(np.array_equal(column.to_numpy(), np.arange(start, start + len(column))))
