"""The language server, spoken to as an editor does: JSON-RPC on the stdin and stdout of the real process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls.lsp.server")

OSLER = str(Path(sys.executable).with_name("osler"))
CODE = """import torch

ä = "😀"; state = torch.load("a.pt", weights_only=False)
"""
MENDED = CODE.replace("False", "True")
CAPABLE = {"notebookDocument": {"synchronization": {"executionSummarySupport": False}}}


class Editor:
    """One editor with one server."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [OSLER, "lint", "--server", "--all", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0
        self.can = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABLE})["capabilities"]
        self.tell("initialized", {})

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        out = self.process.stdout
        assert out is not None
        length = 0
        while (line := out.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(out.read(length))  # type: ignore[no-any-return]

    def tell(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: object) -> Any:
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.number:
                return message["result"]

    def told(self, method: str) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("method") == method:
                return message["params"]  # type: ignore[no-any-return]

    def diagnostics(self) -> list[dict[str, Any]]:
        return self.told("textDocument/publishDiagnostics")["diagnostics"]  # type: ignore[no-any-return]

    def rules(self, documents: int) -> dict[str, set[str]]:
        """The rules found in so many documents, by the end of their URIs."""
        told = [self.told("textDocument/publishDiagnostics") for _ in range(documents)]
        return {t["uri"].rpartition("#")[2]: {d["code"] for d in t["diagnostics"]} for t in told}


@pytest.fixture
def editor(here: Path) -> Iterator[Editor]:
    one = Editor()
    yield one
    one.ask("shutdown", None)
    one.tell("exit", None)
    assert one.process.wait(20) == 0


def test_an_editor_s_afternoon(editor: Editor, here: Path) -> None:
    uri = (here / "a b.py").as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": CODE}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    found = editor.diagnostics()
    (one,) = [d for d in found if d["code"] == "unsafe-load"]
    # 😀 is two UTF-16 units.
    assert one["range"]["start"] == {"line": 2, "character": CODE.split("\n")[2].index("torch.load") + 1}
    assert one["source"] == "osler"

    span = {"range": one["range"], "textDocument": {"uri": uri}, "context": {"diagnostics": [one]}}
    action = next(
        a for a in editor.ask("textDocument/codeAction", span) if a["diagnostics"][0]["code"] == "unsafe-load"
    )
    line = CODE.split("\n")[2].encode("utf-16-le")
    (edit,) = action["edit"]["changes"][uri]
    start, end = edit["range"]["start"]["character"] * 2, edit["range"]["end"]["character"] * 2
    assert (line[:start].decode("utf-16-le") + edit["newText"] + line[end:].decode("utf-16-le")) == MENDED.split("\n")[
        2
    ]

    hover = editor.ask("textDocument/hover", {"textDocument": {"uri": uri}, "position": one["range"]["start"]})
    assert "Why it hurts" in hover["contents"]["value"] and "\x1b" not in hover["contents"]["value"]
    away = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    assert editor.ask("textDocument/hover", away) is None

    def change(version: int, text: str) -> None:
        params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
        editor.tell("textDocument/didChange", params)

    change(2, CODE + "def f(:\n")  # half a line typed: nothing is taken back
    change(3, CODE + "x = 1  # typed quickly\n")
    change(4, MENDED)
    assert "unsafe-load" not in {d["code"] for d in editor.diagnostics()}  # one look at the end of the typing

    change(5, CODE.replace("\n\n", "\n\n\n"))
    assert {d["range"]["start"]["line"] for d in editor.diagnostics() if d["code"] == "unsafe-load"} == {3}
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert editor.diagnostics() == []


def test_a_notebook(editor: Editor, here: Path) -> None:
    (selector,) = editor.can["notebookDocumentSync"]["notebookSelector"]
    assert selector == {"notebook": "jupyter-notebook"}
    uri = (here / "n.ipynb").as_uri()
    cells = {
        "title": ("markdown", "# torch.load"),
        "first": ("python", "%matplotlib inline\nimport torch"),
        "shell": ("shellscript", "ls | head"),
        "last": ("python", "x = 1\nä = '😀'; state = torch.load('a.pt', weights_only=False)"),
    }

    def cell(name: str) -> str:
        return uri.replace("file:", "vscode-notebook-cell:") + "#" + name

    document = {
        "uri": uri,
        "notebookType": "jupyter-notebook",
        "version": 1,
        "cells": [{"kind": 1 if lang == "markdown" else 2, "document": cell(n)} for n, (lang, _) in cells.items()],
    }
    texts = [{"uri": cell(n), "languageId": lang, "version": 1, "text": text} for n, (lang, text) in cells.items()]
    editor.tell("notebookDocument/didOpen", {"notebookDocument": document, "cellTextDocuments": texts})
    first, last = (editor.told("textDocument/publishDiagnostics") for _ in range(2))
    assert (first["uri"], first["diagnostics"]) == (cell("first"), []) and last["uri"] == cell("last")
    (one,) = [d for d in last["diagnostics"] if d["code"] == "unsafe-load"]
    assert one["range"]["start"] == {"line": 1, "character": len("ä = '..'; state = ")}

    span = {"range": one["range"], "textDocument": {"uri": cell("last")}, "context": {"diagnostics": [one]}}
    actions = editor.ask("textDocument/codeAction", span)
    (changes,) = [a["edit"]["changes"] for a in actions if a["diagnostics"][0]["code"] == "unsafe-load"]
    ((edited, (edit,)),) = changes.items()
    assert edited == cell("last") and edit["range"]["start"]["line"] == 1
    at = {"textDocument": {"uri": cell("last")}, "position": one["range"]["start"]}
    assert "Why it hurts" in editor.ask("textDocument/hover", at)["contents"]["value"]

    def change(version: int, cells: dict[str, object]) -> None:
        params = {"notebookDocument": {"uri": uri, "version": version}, "change": {"cells": cells}}
        editor.tell("notebookDocument/didChange", params)

    def typed(name: str, version: int, text: str) -> dict[str, object]:
        return {"textContent": [{"document": {"uri": cell(name), "version": version}, "changes": [{"text": text}]}]}

    change(2, typed("last", 2, "def f(:"))  # half a line typed: what was found there stays, the other is looked at
    assert editor.rules(1) == {"first": set()}
    change(3, typed("last", 3, "x = 1"))
    assert editor.rules(2) == {"first": set(), "last": set()}
    change(4, {"structure": {"array": {"start": 3, "deleteCount": 1}, "didClose": [{"uri": cell("last")}]}})
    assert editor.rules(2) == {"first": set(), "last": set()}
    closed = {"notebookDocument": {"uri": uri}, "cellTextDocuments": [{"uri": cell("first")}]}
    editor.tell("notebookDocument/didClose", closed)
    assert editor.rules(1) == {"first": set()}


def test_a_file_beyond_the_cap_is_said_and_hangs_nothing(here: Path) -> None:
    editor = Editor("--set", "lint.seconds=0.1")
    uri = (here / "a.py").as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": "x = [1, 2, 3]\n" * 20_000}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    message = editor.told("window/logMessage")["message"]
    assert message == "a.py: took longer than 0.1 s of work and was given up"
    params = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": MENDED}]}
    editor.tell("textDocument/didChange", params)
    assert "unsafe-load" not in {d["code"] for d in editor.diagnostics()}
    editor.ask("shutdown", None)
    editor.tell("exit", None)
    assert editor.process.wait(20) == 0


def test_the_configuration_counts(here: Path) -> None:
    (here / "osler.toml").write_text('[per_file_ignores]\n"a.py" = ["unsafe-load"]\n')
    editor = Editor()
    uri = (here / "a.py").as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": CODE}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    assert "unsafe-load" not in {d["code"] for d in editor.diagnostics()}
    editor.process.kill()
    editor.process.wait()


def test_without_pygls_one_line_says_what_to_install(here: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None; sys.argv = ['osler', 'lint', '--server']\nfrom osler.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "osler: the language server needs pygls 2: pip install 'osler[lsp]'\n")
