"""A Jupyter notebook as one source: its code cells in order, magics blanked, with the way back to cell and line."""

from __future__ import annotations

import json
import re

from osler.syntax.text import Cell, Text, Unreadable

# Cell magics behind which Python goes on; behind any other stands another language.
_PYTHON = frozenset({"time", "timeit", "capture", "prun", "python", "python3", "pypy", "memit", "mprun", "lprun"})
_MAGIC = re.compile(r"^(\s*)(%|!|\?)")
_ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)(%|!)")
_HELP = re.compile(r"^\s*[\w.]+\?{1,2}\s*$")


def join(data: bytes) -> Text:
    """The code of a notebook.

    Raises:
        Unreadable: it is no JSON, or no notebook.
    """
    cells = code_cells(data)
    lines: list[str] = []
    places: list[Cell] = []
    for number, source in cells:
        body = python_lines(source)
        places.append(Cell(number, len(lines), len(body)))
        lines += body
    return Text("\n".join(lines) + "\n" if lines else "", places)


def code_cells(data: bytes) -> list[tuple[int, str]]:
    """The code cells: their 1-based number among all cells, and their source."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"is no notebook: {error}") from None
    if not isinstance(notebook, dict):
        raise Unreadable("is no notebook: its JSON is no object")
    cells = notebook.get("cells")
    if cells is None:
        # The format before nbformat 4.
        sheets = notebook.get("worksheets")
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
    if not isinstance(cells, list):
        raise Unreadable("is no notebook: it has no cells")
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    language = kernel.get("language") if isinstance(kernel, dict) else None
    if isinstance(language, str) and language.lower() not in ("python", "python3", ""):
        raise Unreadable(f"is a notebook in {language}")
    out = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        out.append((number, text.replace("\r\n", "\n").replace("\r", "\n")))
    return out


def python_lines(source: str) -> list[str]:
    """A cell's lines with what is no Python blanked; as many as before."""
    lines = source.split("\n")
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%"):
        name = first[2:].split()[0] if first[2:].split() else ""
        if name not in _PYTHON:
            return ["" for _ in lines]
    out = []
    goes_on = False
    for line in lines:
        magic, assigned = _MAGIC.match(line), _ASSIGNED.match(line)
        if goes_on:
            out.append("")
            goes_on = line.rstrip().endswith("\\")
        elif magic is not None:
            # `pass` keeps a block that holds nothing else.
            out.append(f"{magic.group(1)}pass")
            goes_on = line.rstrip().endswith("\\")
        elif assigned is not None:
            out.append(f"{assigned.group(1)}None")
            goes_on = line.rstrip().endswith("\\")
        elif _HELP.match(line):
            out.append("pass")
        else:
            out.append(line)
    return out
