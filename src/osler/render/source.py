"""A few lines of source around a place, read from files that may be missing, huge, binary or wrongly encoded."""

from __future__ import annotations

import io
import linecache
import re
import stat
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from osler.render.words import clean

MAX_BYTES = 16 << 20  # no source file a person edits is larger; a generated one is not worth the wait
MAX_WIDTH = 200

_NEWLINE = re.compile(r"\r\n|\r|\n")  # str.splitlines also splits at form feeds, which Python does not count as lines


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines `first` … `first + len(lines) - 1` of a file; `line` is the marked one.

    The lines are ready to be shown: tabs expanded, control characters gone, cut after 200 characters.
    """

    line: int
    first: int
    lines: tuple[str, ...]

    @property
    def marked(self) -> str:
        """The text of the marked line."""
        return self.lines[self.line - self.first]


Reader = Callable[[str, int], "Excerpt | None"]


def excerpt(path: str, line: int, context: int = 2) -> Excerpt | None:
    """The lines around `line` of the file, or None where they cannot be read.

    Args:
        path: the file as the interpreter knew it; code of a notebook cell is taken from `linecache`.
        line: 1-based.
        context: lines shown before and after.
    """
    lines = _lines(path)
    if lines is None or not 1 <= line <= len(lines):
        return None
    first = max(1, line - context)
    shown = [_show(text) for text in lines[first - 1 : line + context]]
    while len(shown) > line - first + 1 and not shown[-1]:
        shown.pop()
    return Excerpt(line, first, tuple(shown))


def reader(directory: str | None, context: int = 2) -> Reader:
    """A reader that looks for relative paths below `directory`: the working directory of the script that ran."""

    def read(path: str, line: int) -> Excerpt | None:
        if directory and not path.startswith("<"):
            path = str(Path(directory) / path)
        return excerpt(path, line, context)

    return read


def _lines(path: str) -> list[str] | None:
    try:
        # stat before open: opening a FIFO would wait for a writer.
        about = Path(path).stat()
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
            return None
        raw = Path(path).read_bytes()
    except (OSError, ValueError):
        # Asked only for what is cached already: linecache looks for other files of that name along sys.path.
        cached = linecache.getlines(path) if len(linecache.cache.get(path, ())) == 4 else []
        return [text.rstrip("\n") for text in cached] or None
    return _NEWLINE.split(_decode(raw))


def _decode(raw: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return raw.decode("latin-1")


def _show(text: str) -> str:
    text = clean(text[: MAX_WIDTH * 4]).expandtabs(4).rstrip()
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."
