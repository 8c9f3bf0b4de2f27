"""How a text file is written: compression, encoding, delimiter, header."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from osler.data.need import DataError
from osler.data.tables.formats import PACKED, first_bytes

_SAMPLE = 1 << 18
_DELIMITERS = ",;\t|"
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written.

    Attributes:
        header: the names as they stand in the first row, or `0`, `1`, … where the file has none.
        headless: whether it has none.
        delimiter: one character.
        encoding: `utf-8`, `utf-16`.
        compression: `gzip`, `zstd`, `bz2` or None.
        decimal: the decimal mark.
        bare: whether there is a header and nothing after it.
        notes: sentences for the user.
    """

    header: tuple[str, ...]
    headless: bool
    delimiter: str
    encoding: str
    compression: str | None
    decimal: str = "."
    bare: bool = False
    notes: tuple[str, ...] = ()


def dialect_of(path: Path, name: str) -> Dialect:
    """The dialect of a file, by its first 256 KiB.

    Raises:
        DataError: it cannot be read, holds nothing, or holds no text.
    """
    head = first_bytes(path)
    compression = next((codec for magic, codec in PACKED if head.startswith(magic)), None)
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            sample = stream.read(_SAMPLE)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{name} cannot be unpacked ({compression}): {error}") from None
    encoding = "utf-16" if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    whole = len(sample) < _SAMPLE
    if encoding == "utf-16" and len(sample) % 2:
        sample = sample[:-1]
    text = sample.decode(encoding, "replace").removeprefix("\ufeff")
    if "\x00" in text:
        raise DataError(f"{name} is neither parquet, Arrow, numpy nor text")
    if not text.strip():
        raise DataError(f"{name} is empty: there is not even a header")
    rows = {mark: _rows(text, mark, whole) for mark in _DELIMITERS}
    delimiter = _delimiter(rows, path.name.lower())
    first = rows[delimiter][0]
    if any("\ufffd" in cell for cell in first):
        raise DataError(f"{name}: the header is not UTF-8: convert the file (iconv -f cp1252 -t utf-8)")
    if _headless(first):
        note = f"the first row ({len(first)} numbers) is no header: the columns are called '0', '1', …"
        return Dialect(tuple(map(str, range(len(first)))), True, delimiter, encoding, compression, notes=(note,))
    bare = whole and len(rows[delimiter]) == 1
    decimal = "," if delimiter == ";" and _decimal_comma(rows[delimiter][1:]) else "."
    return Dialect(tuple(first), False, delimiter, encoding, compression, decimal, bare)


def _rows(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    """The first rows that have anything in them; the last one only if it is known to be complete."""
    out: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                out.append(row)
            if len(out) == 50:
                return out
    except csv.Error:
        pass
    return out if whole or len(out) < 2 else out[:-1]


def _delimiter(rows: dict[str, list[list[str]]], name: str) -> str:
    if any(suffix in name for suffix in (".tsv", ".tab")):
        return "\t"

    def score(mark: str) -> tuple[bool, int]:
        found = rows[mark]
        width = len(found[0]) if found else 1
        even = all(len(row) == width for row in found)
        return (even and width > 1, width)

    return max(_DELIMITERS, key=score)


def _decimal_comma(rows: list[list[str]]) -> bool:
    """Whether a column holds numbers such as `1,5` only, and none holds such as `1.5`."""
    cells = [[cell.strip() for cell in column if cell.strip()] for column in zip(*rows)]
    comma = any(column and all(re.fullmatch(r"[+-]?\d+,\d+", cell) for cell in column) for column in cells)
    return comma and not any(re.fullmatch(r"[+-]?\d+\.\d+", cell) for column in cells for cell in column)


def _headless(first: list[str]) -> bool:
    """Whether the first row is data: all numbers, and not such as name columns (whole and each of them once)."""
    cells = [cell.strip() for cell in first]
    if not all(_NUMBER.fullmatch(cell) for cell in cells):
        return False
    return len(set(cells)) < len(cells) or not all(cell.lstrip("+-").isdigit() for cell in cells)
