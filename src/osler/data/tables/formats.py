"""What a file holds, by its first bytes; its name only decides where the bytes do not."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from osler.data.need import DataError


class Format(Enum):
    """The formats that are read."""

    PARQUET = "parquet"
    ARROW_FILE = "Arrow file"
    ARROW_STREAM = "Arrow stream"
    FEATHER_1 = "Feather version 1"
    NUMPY = "numpy"
    TEXT = "CSV"


_HEAD = 64

_MAGIC = (
    (b"PAR1", Format.PARQUET),
    (b"ARROW1", Format.ARROW_FILE),
    (b"FEA1", Format.FEATHER_1),
    (b"\xff\xff\xff\xff", Format.ARROW_STREAM),
    (b"\x93NUMPY", Format.NUMPY),
)

PACKED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bz2"))
"""Compressed text is read as it is; first bytes and the name that pyarrow has for the codec."""

_FOREIGN = (
    (b"version https://git-lfs", "is a Git LFS pointer, not the data: run git lfs pull"),
    (b"<!DOCTYPE", "is an HTML page: was a login or an error page downloaded in its place?"),
    (b"<html", "is an HTML page: was a login or an error page downloaded in its place?"),
    (b"SQLite format 3", "is an SQLite database: export the table to parquet or CSV"),
    (b"\x89HDF", "is an HDF5 file: export the table to parquet or CSV"),
    (b"ORC", "is an ORC file: convert it to parquet"),
    (b"Obj\x01", "is an Avro file: convert it to parquet"),
    (b"PARE", "is an encrypted parquet file: osler has no key for it"),
    (b"\xd0\xcf\x11\xe0", "is an Excel file: save the sheet as CSV"),
    (b"\x80\x02", "is a pickle, which osler does not open, as loading one can run any code: save it as parquet"),
    (b"\x80\x03", "is a pickle, which osler does not open, as loading one can run any code: save it as parquet"),
    (b"\x80\x04", "is a pickle, which osler does not open, as loading one can run any code: save it as parquet"),
    (b"\x80\x05", "is a pickle, which osler does not open, as loading one can run any code: save it as parquet"),
)


def detect(path: Path) -> Format:
    """The format of a file.

    Raises:
        DataError: it cannot be opened, is empty, or holds something else.
    """
    head = first_bytes(path)
    if not head:
        raise DataError(f"{path} is empty (0 bytes)")
    return detect_bytes(head, str(path))


def detect_bytes(head: bytes, name: str) -> Format:
    """The format by the first 64 bytes.

    Raises:
        DataError: they belong to something that osler does not read.
    """
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    for magic, what in _FOREIGN:
        if head.lower().startswith(magic.lower()):
            raise DataError(f"{name} {what}")
    lower = name.lower()
    if head.startswith(b"PK\x03\x04"):
        if lower.endswith(".npz"):
            return Format.NUMPY
        what = (
            "an Excel file: save the sheet as CSV" if lower.endswith((".xlsx", ".xlsm")) else "a zip archive: unpack it"
        )
        raise DataError(f"{name} is {what}")
    for suffixes, what, begin in (
        ((".parquet", ".parq", ".pq"), "parquet file", "PAR1"),
        ((".feather", ".arrow", ".ipc", ".arrows"), "Arrow file", "ARROW1"),
        ((".npy",), "numpy file", "\\x93NUMPY"),
        ((".npz",), "numpy archive", "PK"),
    ):
        if lower.endswith(suffixes):
            raise DataError(f"{name} is no {what}: it does not begin with {begin}; is it damaged, or misnamed?")
    if lower.endswith((".json", ".jsonl", ".ndjson")):
        raise DataError(f"{name} is JSON: convert it to parquet or CSV")
    packed = any(head.startswith(magic) for magic, _ in PACKED)
    utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\x00" in head and not packed and not utf16:
        raise DataError(f"{name} is neither parquet, Arrow, numpy nor text")
    return Format.TEXT


def first_bytes(path: Path, count: int = _HEAD) -> bytes:
    """The beginning of a file.

    Raises:
        DataError: it cannot be opened.
    """
    try:
        with path.open("rb") as file:
            return file.read(count)
    except PermissionError:
        raise DataError(f"{path}: no permission to read it") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
