"""The text of a source file, whatever it is encoded in, or one line that says why there is none."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 4_000_000  # a file beyond this is data in the form of Python


class Unreadable(Exception):
    """A file that cannot be linted.

    Attributes:
        line: 1-based line of the trouble; None where it is the file as a whole.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class Cell:
    """A code cell of a notebook: its 1-based number among all cells, and the line before its first in the joined text."""

    number: int
    offset: int
    lines: int


@dataclass(slots=True)
class Text:
    """A source that can be parsed.

    Attributes:
        text: with `\\n` at the end of lines.
        cells: of a notebook, in order.
        newline: how lines end in the file.
        encoding: of the file.
    """

    text: str
    cells: list[Cell] = field(default_factory=list)
    newline: str = "\n"
    encoding: str = "utf-8"


def read(path: Path) -> Text:
    """The text of a file.

    Raises:
        Unreadable: it is binary, too large, in another encoding than it says, or a broken notebook.
        OSError: it cannot be opened.
    """
    size = path.stat().st_size
    if size > MOST_BYTES and path.suffix != ".ipynb":
        raise Unreadable(f"has {size / 1e6:.1f} MB; files beyond {MOST_BYTES / 1e6:.0f} MB are left out")
    return decode(path.read_bytes(), path.suffix)


def decode(data: bytes, suffix: str = ".py") -> Text:
    """The text of a file's bytes; arguments and errors as of `read`."""
    if suffix == ".ipynb":
        from osler.syntax.notebook import join

        return join(data)
    if b"\0" in data[:65536]:
        raise Unreadable("is binary")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except SyntaxError as error:
        raise Unreadable(f"cannot be decoded: {error.msg}") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise Unreadable(f"cannot be decoded: {error}") from None
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Text(text, newline=newline, encoding=encoding)


def parse(text: str) -> ast.Module:
    """The tree of a source.

    Raises:
        Unreadable: it does not parse; the line says where, and whether it looks like Python 2.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        message = (error.msg or "invalid syntax").strip().rstrip(".")
        old = "Missing parentheses in call to 'print'" in message or "multiple exception types" in message
        hint = "; it looks like Python 2" if old else ""
        raise Unreadable(f"does not parse: {message}{hint}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = "it is nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
        raise Unreadable(f"does not parse: {reason}") from None
