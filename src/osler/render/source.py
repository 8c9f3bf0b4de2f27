"""A few lines of source around a place, read from files that may be missing, huge, binary or wrongly encoded."""

from __future__ import annotations

import functools
import io
import linecache
import re
import stat
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from osler.render.words import clean

MAX_BYTES = 16 << 20  # no source file a person edits is larger; a generated one is not worth the wait
MAX_WIDTH = 200

_NEWLINE = re.compile(r"\r\n|\r|\n")  # str.splitlines also splits at form feeds, which Python does not count as lines


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `first` … `first + len(lines) - 1` of a file or of a notebook's cell; `line` is the marked one.

    The lines are ready to be shown: tabs expanded, control characters gone, cut after 200 characters. `file_line` is the line of
    the file itself in which the marked one stands: of a notebook, a line of its JSON.
    """

    line: int
    first: int
    lines: tuple[str, ...]
    file_line: int

    @property
    def marked(self) -> str:
        """The text of the marked line."""
        return self.lines[self.line - self.first]


class Reader(Protocol):
    """Reads the lines around a place."""

    def __call__(self, path: str, line: int, cell: int | None = None, /) -> Excerpt | None:
        """The lines, or None where they cannot be read."""


def excerpt(path: str, line: int, cell: int | None = None, context: int = 2) -> Excerpt | None:
    """The lines around `line` of the file, or None where they cannot be read.

    Args:
        path: the file as the interpreter knew it; code of a notebook cell is taken from `linecache`.
        line: 1-based, within the cell where there is one.
        cell: 1-based number of a notebook's cell, among all cells.
        context: lines shown before and after.
    """
    if cell is None:
        lines, stand = _lines(path), None
    else:
        lines, stand = _cell(path, cell)
    if lines is None or not 1 <= line <= len(lines):
        return None
    first = max(1, line - context)
    shown = [_show(text) for text in lines[first - 1 : line + context]]
    while len(shown) > line - first + 1 and not shown[-1]:
        shown.pop()
    return Excerpt(line, first, tuple(shown), line if stand is None else stand[line - 1])


def reader(directory: str | None, context: int = 2) -> Reader:
    """A reader that looks for relative paths below `directory`: the working directory of the script that ran."""

    def read(path: str, line: int, cell: int | None = None) -> Excerpt | None:
        if directory and not path.startswith("<"):
            path = str(Path(directory) / path)
        return excerpt(path, line, cell, context)

    return read


def _lines(path: str) -> list[str] | None:
    try:
        raw = _bytes(path)
    except (OSError, ValueError):
        # Asked only for what is cached already: linecache looks for other files of that name along sys.path.
        cached = linecache.getlines(path) if len(linecache.cache.get(path, ())) == 4 else []
        return [text.rstrip("\n") for text in cached] or None
    return None if raw is None else _NEWLINE.split(_decode(raw))


def _bytes(path: str) -> bytes | None:
    """The bytes of a file that a person may have written."""
    # stat before open: opening a FIFO would wait for a writer.
    about = Path(path).stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
        return None
    return Path(path).read_bytes()


def _cell(path: str, cell: int) -> tuple[list[str] | None, list[int] | None]:
    try:
        raw = _bytes(path)
    except (OSError, ValueError):
        return None, None
    return _cells(raw or b"").get(cell, (None, None))


@functools.lru_cache(maxsize=1)  # findings come file by file
def _cells(raw: bytes) -> dict[int, tuple[list[str], list[int]]]:
    """The lines of each cell of a notebook, and the lines of its JSON in which they stand."""
    from osler.lint.cells import sources, stand

    try:
        text = raw.decode("utf-8-sig")
        return {s.number: (_NEWLINE.split(s.text), stand(text, s)) for s in sources(text)}
    except (ValueError, IndexError, RecursionError):
        return {}


def _decode(raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return raw.decode("latin-1")


def _show(text: str) -> str:
    text = clean(text[: MAX_WIDTH * 4]).expandtabs(4).rstrip()
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
