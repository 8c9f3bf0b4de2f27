"""Writes styled lines on a rich console: folded at words on a terminal, whole lines everywhere else."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from osler.core.finding import Severity

Part = str | tuple[str, str]

SEVERITY_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
QUIET = "dim"
MAX_WIDTH = 110  # longer lines of prose are hard to read, however wide the window

_WORD = re.compile(r"\S+\s*")


class Pen:
    """Lines on one console.

    Text is never read as markup, and what the console's encoding cannot hold is escaped instead of raising. A word is
    never broken, so a path can be copied from the output; piped output is not folded at all, so it can be searched.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = min(console.width, MAX_WIDTH) if console.is_terminal else None

    def line(self, *parts: Part, indent: int = 0, hang: int | None = None) -> None:
        """Write the parts, each a text or a (text, style), as one line.

        Args:
            parts: already cleaned text.
            indent: spaces before the line.
            hang: spaces before the lines that follow when it is folded; `indent` when None.
        """
        hang = indent if hang is None else hang
        text = Text()
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(self._fitting(content), style)
        lines = [text]
        if self.width is not None:
            lines = list(text.divide(_breaks(text.plain, max(self.width - indent, 20), max(self.width - hang, 20))))
        out = Text()
        for i, piece in enumerate(lines):
            piece.rstrip()
            out.append("\n" if i else "")
            out.append(" " * (hang if i else indent))
            out.append_text(piece)
        # One call a line: what a script prints at the same time cannot land inside it.
        self.console.print(out, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def blank(self) -> None:
        """Write an empty line."""
        self.line()

    def code(self, source: str, indent: int) -> None:
        """Write Python code, coloured on a terminal, never folded."""
        source = self._fitting(source.strip("\n"))
        text = Text(source)
        if self.console.is_terminal:
            # Here, because only `osler explain` on a terminal needs the highlighter.
            from rich.syntax import Syntax

            text = Syntax(source, "python", theme="ansi_dark", background_color="default").highlight(source)
        for piece in text.split("\n"):
            piece.rstrip()
            if piece.plain:
                piece.pad_left(indent)
            self.console.print(piece, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def raw(self, *parts: Part) -> None:
        """Write the parts as one line that is not folded; on a terminal it is cut at the edge."""
        text = Text()
        for part in parts:
            content, style = (part, "") if isinstance(part, str) else part
            text.append(self._fitting(content), style)
        text.rstrip()
        if self.console.is_terminal:
            text.truncate(self.console.width, overflow="crop")
        self.console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def _fitting(self, text: str) -> str:
        encoding = self.console.encoding
        if encoding.startswith("utf"):
            return text
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _breaks(text: str, first: int, rest: int) -> list[int]:
    """Where to break the text so that the first line and the rest fit; rich's wrapping breaks or cuts long words."""
    breaks: list[int] = []
    used = 0
    for match in _WORD.finditer(text):
        size = cell_len(match.group().rstrip())
        if used and used + size > (rest if breaks else first):
            breaks.append(match.start())
            used = 0
        used += cell_len(match.group())
    return breaks
