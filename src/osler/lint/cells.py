"""Where the sources of a notebook's cells stand in its JSON, so that one can be changed and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a cell.

    Attributes:
        number: 1-based, among all cells.
        start, end: where its JSON value stands.
        text: the source itself, as written.
    """

    number: int
    start: int
    end: int
    text: str


def sources(notebook: str) -> list[Source]:
    """The sources of all cells of a notebook's text.

    Raises:
        ValueError: it is no notebook.
    """
    for key, at, _ in _members(notebook, _skip(notebook, 0)):
        if key == "cells":
            return list(_cells(notebook, at))
        if key == "worksheets":
            for sheet, _ in _elements(notebook, at):
                for inner, start, _ in _members(notebook, sheet):
                    if inner == "cells":
                        return list(_cells(notebook, start))
    raise ValueError("it has no cells")


def stand(notebook: str, source: Source) -> list[int]:
    """The 1-based line of the notebook's text in which each line of a cell's source stands."""
    if notebook[source.start] != "[":
        return [notebook.count("\n", 0, source.start) + 1] * (source.text.count("\n") + 1)
    out: list[int] = []
    line, seen, ended = 1, 0, True
    for start, end in _elements(notebook, source.start):
        line, seen = line + notebook.count("\n", seen, start), start
        pieces = str(json.loads(notebook[start:end])).split("\n")
        # An element goes on where the one before it has stopped, which is seldom within a line.
        if ended and out:
            out.pop()
        out += [line] * (len(pieces) - (0 if ended else 1))
        ended = not pieces[-1] and (ended or len(pieces) > 1)
    return out or [line]


def replaced(notebook: str, source: Source, text: str) -> str:
    """The notebook's text with another source in one cell, laid out as the old one was."""
    old = notebook[source.start : source.end]
    escape = notebook.isascii() and "\\u" in notebook
    if old.startswith('"'):
        new = json.dumps(text, ensure_ascii=escape)
    else:
        new = _array(notebook, source, text, escape)
    return notebook[: source.start] + new + notebook[source.end :]


def _array(notebook: str, source: Source, text: str, escape: bool) -> str:
    elements = list(_elements(notebook, source.start))
    raw: dict[str, str] = {}
    for start, end in elements:
        raw.setdefault(json.loads(notebook[start:end]), notebook[start:end])
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    if not elements:
        return json.dumps(lines, ensure_ascii=escape)
    before = notebook[source.start + 1 : elements[0][0]]
    after = notebook[elements[-1][1] : source.end - 1]
    between = notebook[elements[0][1] : elements[1][0]] if len(elements) > 1 else "," + (before or " ")
    body = between.join(raw.get(line) or json.dumps(line, ensure_ascii=escape) for line in lines)
    return f"[{before}{body}{after}]" if lines else "[]"


def _cells(notebook: str, at: int) -> Iterator[Source]:
    for number, (start, _) in enumerate(_elements(notebook, at), 1):
        if notebook[start] != "{":
            continue
        found = {key: (s, e) for key, s, e in _members(notebook, start) if key in ("source", "input")}
        span = found.get("source") or found.get("input")
        if span is None:
            continue
        value = json.loads(notebook[span[0] : span[1]])
        yield Source(number, *span, "".join(map(str, value)) if isinstance(value, list) else str(value))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the object that begins at a place."""
    _expect(text, at, "{")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        _expect(text, at, ":")
        start = _skip(text, at + 1)
        _, end = _DECODER.raw_decode(text, start)
        yield str(key), start, end
        at = _next(text, end, "}")


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each value of the array that begins at a place."""
    _expect(text, at, "[")
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _next(text, end, "]")


def _next(text: str, at: int, close: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == close:
        return at
    _expect(text, at, ",")
    return _skip(text, at + 1)


def _expect(text: str, at: int, what: str) -> None:
    if text[at : at + 1] != what:
        raise ValueError(f"{what} expected at {at}")
