"""The text of a file as people see it, for what is printed; nothing of the rules is imported here."""

from __future__ import annotations

from pathlib import Path

from osler.lint.result import Comment, FileResult
from osler.syntax.ignores import comments
from osler.syntax.notebook import code_cells
from osler.syntax.text import Cell, Text, Unreadable, decode


def lines_of(path: Path) -> dict[int | None, list[str]]:
    """The lines of a file under None, or those of each code cell of a notebook under its number.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    return lines_in(path.read_bytes(), path.suffix)


def lines_in(data: bytes, suffix: str) -> dict[int | None, list[str]]:
    """As `lines_of`, of bytes."""
    try:
        if suffix == ".ipynb":
            return {number: source.split("\n") for number, source in code_cells(data)}
        return {None: decode(data, suffix).text.split("\n")}
    except Unreadable as error:
        raise ValueError(str(error)) from None


def place(cells: list[Cell], line: int) -> tuple[int | None, int]:
    """Cell and line within it of a line of joined code; None and the line itself where there are no cells."""
    for cell in reversed(cells):
        if line > cell.offset:
            return cell.number, line - cell.offset
    return None, line


def note_comments(text: str, cells: list[Cell], result: FileResult) -> None:
    """Enter the ignore comments of a source, and what is wrong with them."""
    found = comments(text)
    for written in found.written:
        cell, line = place(cells, written.line)
        shift = written.line - line
        result.comments.append(Comment(cell, line, max(written.first - shift, 1), written.last - shift, written.rules))
    for line, complaint in found.complaints:
        result.complaints.append((*place(cells, line), complaint))


def read_comments(path: Path) -> list[Comment]:
    """The ignore comments of a file that is not looked at itself; none where it cannot be read."""
    result = FileResult(str(path))
    try:
        text: Text = decode(path.read_bytes(), path.suffix)
    except (OSError, Unreadable):
        return []
    note_comments(text.text, text.cells, result)
    return result.comments
