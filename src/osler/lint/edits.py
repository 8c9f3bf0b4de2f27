"""Edits of a file's bytes: newlines, encoding, byte-order mark and everything outside the edited pieces stay as they are."""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from osler.lint import cells
from osler.lint.hit import Edit, Fix
from osler.syntax.notebook import python_lines

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class CannotEdit(ValueError):
    """Edits that cannot be made; the message says why."""


def apart(fixes: Sequence[Fix]) -> list[int]:
    """The positions of those that can be made together: of two that overlap the first."""
    taken: list[tuple[tuple[int, int], tuple[int, int]]] = []
    out = []
    for i, fix in enumerate(fixes):
        spans = [((e.line, e.column), (e.end_line, e.end_column)) for e in fix.edits]
        if spans and not any(_meet(a, b) for a in spans for b in taken):
            taken += spans
            out.append(i)
    return out


def _meet(a: tuple[tuple[int, int], tuple[int, int]], b: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    if a[0] == a[1] or b[0] == b[1]:
        # What is put in at the edge of another edit could land on either side of it.
        return a[0] <= b[1] and b[0] <= a[1]
    return a[0] < b[1] and b[0] < a[1]


def edited(data: bytes, suffix: str, edits: Iterable[Edit]) -> bytes:
    """The bytes of a file after the edits.

    Args:
        data: the bytes of the file.
        suffix: `.py` or `.ipynb`.
        edits: do not overlap; of a notebook, lines of its joined code.

    Raises:
        CannotEdit: a place does not exist, lies in more than one cell or in a magic, or what is put in cannot be encoded.
    """
    if suffix == ".ipynb":
        return _notebook(data, list(edits))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        if text.encode(encoding) != data:
            raise CannotEdit(f"its encoding {encoding} does not give the same bytes back")
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise CannotEdit(str(error)) from None
    new = _replaced(text, edits)
    try:
        return new.encode(encoding)
    except UnicodeEncodeError:
        raise CannotEdit(f"what would be put in cannot be written in {encoding}") from None


def _replaced(text: str, edits: Iterable[Edit]) -> str:
    lines = _LINE.findall(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    newline = next((line[len(line.rstrip("\r\n")) :] for line in lines if line.endswith(("\r", "\n"))), "\n")

    def offset(line: int, column: int) -> int:
        if line == len(lines) + 1 and column == 0:
            return len(text)
        if not 1 <= line <= len(lines):
            raise CannotEdit(f"there is no line {line}")
        own = lines[line - 1].rstrip("\r\n").encode("utf-8", "surrogatepass")
        if column > len(own):
            raise CannotEdit(f"line {line} has no column {column}")
        try:
            return starts[line - 1] + len(own[:column].decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            raise CannotEdit(f"column {column} of line {line} lies within a character") from None

    spans = sorted((offset(e.line, e.column), offset(e.end_line, e.end_column), e.text) for e in edits)
    out = []
    at = 0
    for start, end, put in spans:
        if start < at or end < start:
            raise CannotEdit("its edits overlap")
        out += [text[at:start], put.replace("\n", newline) if newline != "\n" else put]
        at = end
    return "".join(out) + text[at:]


def _notebook(data: bytes, edits: list[Edit]) -> bytes:
    try:
        text = data.decode("utf-8")
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text.removeprefix("\ufeff")
        there = {s.number: s for s in cells.sources(text)}
    except (ValueError, RecursionError) as error:
        raise CannotEdit(f"the notebook cannot be taken apart: {error}") from None
    from osler.syntax.notebook import join

    places = join(data).cells
    offsets = [c.offset for c in places]
    by_cell: dict[int, list[Edit]] = {}
    for edit in edits:
        at = bisect_right(offsets, edit.line - 1) - 1
        if at < 0 or edit.end_line > places[at].offset + places[at].lines:
            raise CannotEdit("it reaches over the end of a cell")
        cell, shift = places[at], places[at].offset
        source = there.get(cell.number)
        if source is None:
            raise CannotEdit(f"cell {cell.number} is not where it should be")
        plain = source.text.replace("\r\n", "\n").replace("\r", "\n")
        own = slice(edit.line - shift - 1, edit.end_line - shift)
        if plain.split("\n")[own] != python_lines(plain)[own]:
            raise CannotEdit(f"it touches a magic in cell {cell.number}")
        moved = Edit(edit.line - shift, edit.column, edit.end_line - shift, edit.end_column, edit.text)
        by_cell.setdefault(cell.number, []).append(moved)
    for number in sorted(by_cell, reverse=True):  # from the end: the places before stay where they are
        source = there[number]
        text = cells.replaced(text, source, _replaced(source.text, by_cell[number]))
    return (mark + text).encode("utf-8")
