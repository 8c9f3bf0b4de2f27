"""What an editor has open, as something to lint: a file is one document, a notebook is one for each cell."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.workspace import TextDocument, Workspace


@dataclass(frozen=True, slots=True)
class Part:
    """A document that the editor shows.

    Attributes:
        uri: of the document.
        lines: as they were looked at.
        cell: of a notebook, the 1-based number among all cells.
        offset: lines of the notebook's code before its first.
    """

    uri: str
    lines: list[str]
    cell: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What is looked at as one.

    Attributes:
        uri: of the file or the notebook.
        name: the path as the command line would name it: globs of the configuration are relative.
        version: counted by the editor.
        data: the bytes of the file, were it saved now.
        parts: in the order of the code.
    """

    uri: str
    name: str
    version: int | None
    data: bytes
    parts: tuple[Part, ...]

    def part(self, cell: int | None) -> Part | None:
        """The document of a cell."""
        return next((p for p in self.parts if p.cell == cell), None)

    def behind(self, line: int) -> tuple[Part, int]:
        """The document in which a line of the whole code stands, and the line there."""
        part = next((p for p in reversed(self.parts) if p.offset < line), self.parts[0])
        return part, line - part.offset


def version(workspace: Workspace, uri: str) -> int | None:
    """The version that the editor has now."""
    notebook = workspace.get_notebook_document(notebook_uri=uri)
    return workspace.get_text_document(uri).version if notebook is None else notebook.version


def source(workspace: Workspace, uri: str, cwd: Path) -> Source | None:
    """What is open under a URI; None where it is no Python."""
    from pygls import uris

    path = uris.to_fs_path(uri) or ""
    below = os.path.relpath(path, cwd) if path else ""
    name = path if below.startswith("..") else below
    notebook = workspace.get_notebook_document(notebook_uri=uri)
    if notebook is not None:
        return _notebook(workspace, notebook, name) if name.endswith(".ipynb") else None
    if not name.endswith(".py"):
        return None
    document = workspace.get_text_document(uri)
    text = document.source
    return Source(uri, name, document.version, _encoded(text), (Part(uri, text.split("\n")),))


def _notebook(workspace: Workspace, notebook: lsp.NotebookDocument, name: str) -> Source | None:
    cells = [workspace.get_text_document(cell.document) for cell in notebook.cells]
    parts = tuple(_parts(cells))
    data = json.dumps({"cells": [{"cell_type": _kind(c), "source": c.source} for c in cells]}).encode("ascii")
    return Source(notebook.uri, name, notebook.version, data, parts) if parts else None


def _parts(cells: list[TextDocument]) -> Iterator[Part]:
    offset = 0
    for number, cell in enumerate(cells, 1):
        if _kind(cell) == "code":
            lines = cell.source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            yield Part(cell.uri, lines, number, offset)
            offset += len(lines)


def _kind(cell: TextDocument) -> str:
    """Also a code cell may hold another language."""
    return "code" if cell.language_id == "python" else "raw"


def _encoded(text: str) -> bytes:
    """The text in the encoding that it declares itself."""
    import tokenize

    data = text.encode("utf-8", "replace")
    if "coding" not in text[:500]:
        return data
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return text.encode(encoding, "replace")
    except (SyntaxError, LookupError):
        return data
