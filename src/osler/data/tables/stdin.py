"""Standard input: an Arrow stream is read as it comes, anything else is set down in a temporary file first."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.delimited import TextPart
from osler.data.tables.files import Part, join
from osler.data.tables.formats import Format, detect_bytes
from osler.data.tables.ipc import IpcPart, from_stream
from osler.data.tables.parquet import ParquetPart
from osler.data.tables.source import Source

_NAME = "standard input"


def from_stdin(name: str | None = None, stream: BinaryIO | None = None) -> Source:
    """A source over standard input, told apart by its first bytes.

    Raises:
        DataError: it is closed or empty, or holds something that is not read.
    """
    shown = name or _NAME
    if stream is None:
        if sys.stdin is None or sys.stdin.closed:
            raise DataError(f"{shown} is closed")
        stream = sys.stdin.buffer
    head = _at_least(stream, 64)
    if not head:
        raise DataError(f"{shown} is empty")
    kind = detect_bytes(head, shown)
    if kind is Format.ARROW_STREAM:
        return from_stream(pa.PythonFile(_Rest(head, stream), mode="r"), shown)
    if kind is Format.NUMPY:
        raise DataError(f"{shown} is a numpy file: give its path")
    # a parquet file is read from its end, a text file twice; the file is private and goes with the source
    try:
        kept: Any = tempfile.NamedTemporaryFile(prefix="osler-")  # noqa: SIM115
        kept.write(head)
        shutil.copyfileobj(stream, kept, 1 << 20)
        kept.flush()
    except OSError as error:
        raise DataError(f"{shown} cannot be set down in {tempfile.gettempdir()}: {error.strerror or error}") from None
    path = Path(kept.name)
    part: Part
    if kind is Format.PARQUET:
        part = ParquetPart(path, shown)
    elif kind is Format.ARROW_FILE:
        part = IpcPart(path, kind, shown)
    else:
        part = TextPart(path, shown)
    source = join([part], shown)
    source.keeps = kept
    return source


def _at_least(stream: BinaryIO, count: int) -> bytes:
    out = b""
    while len(out) < count and (more := stream.read(count - len(out))):
        out += more
    return out


class _Rest(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            out, self._head = self._head + self._stream.read(), b""
            return out
        out, self._head = self._head[:size], self._head[size:]
        return out + (self._stream.read(size - len(out)) if len(out) < size else b"")
