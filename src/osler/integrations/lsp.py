"""A language server: findings while a file is edited, fixes as code actions, `osler explain` on hovering.

Started by `osler lint --server` on stdin and stdout; the form is the Language Server Protocol 3.17.
"""

from __future__ import annotations

import asyncio
import io
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from osler.app.errors import UserError
from osler.app.lint import Lint, Wishes
from osler.core.finding import Severity
from osler.lint.linter import Linter
from osler.lint.result import Noted
from osler.lint.session import Outcome

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

DEBOUNCE_S = 0.3  # between the last key and the look


@dataclass(slots=True)
class _Open:
    """What is known of a file that is open: its text when it was looked at, its findings."""

    lines: list[str] = field(default_factory=list)
    found: list[tuple[Noted, lsp.Diagnostic]] = field(default_factory=list)


def serve(wishes: Wishes) -> None:
    """Serve one editor until it goes.

    Raises:
        UserError: pygls is not there, or the configuration makes no sense.
    """
    try:
        import pygls.lsp.server
    except ImportError:
        raise UserError("the language server needs pygls 2: pip install 'osler[lsp]'") from None
    del pygls
    ready = server(wishes)
    # Whatever else prints must not come between the messages; the streams are closed at the end, ours stay open.
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    ready.start_io(source, sink)


def server(wishes: Wishes) -> LanguageServer:
    """A server that looks at files as `osler lint` with these wishes would."""
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

    from osler import __version__

    house = Lint(wishes)
    ls = LanguageServer("osler", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
    opened: dict[str, _Open] = {}
    turn = asyncio.Lock()

    async def look(uri: str) -> None:
        path = _path(uri)
        if path is None:
            return
        document = ls.workspace.get_text_document(uri)
        async with turn:
            version, text = document.version, document.source
            noted, broken = await asyncio.to_thread(_look, house, path, text)
        if uri not in opened or document.version != version:
            return  # closed, or edited meanwhile: the next look tells
        if broken:
            return  # half a line typed: what was found before is still the best there is
        one = opened[uri] = _Open(text.split("\n"))
        one.found = [(n, _diagnostic(n, one.lines)) for n in noted]
        ls.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, [d for _, d in one.found], version=version)
        )

    @ls.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def on_open(params: lsp.DidOpenTextDocumentParams) -> None:
        opened[params.text_document.uri] = _Open()
        await look(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def on_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(DEBOUNCE_S)
        if uri in opened and ls.workspace.get_text_document(uri).version == version:
            await look(uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def on_save(params: lsp.DidSaveTextDocumentParams) -> None:
        # What is saved may be imported by the others.
        for uri in [params.text_document.uri, *(u for u in opened if u != params.text_document.uri)]:
            if uri in opened:
                await look(uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def on_close(params: lsp.DidCloseTextDocumentParams) -> None:
        opened.pop(params.text_document.uri, None)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))

    @ls.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
    def on_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        one = opened.get(uri, _Open())
        return [
            _action(uri, noted, diagnostic, one.lines)
            for noted, diagnostic in one.found
            if noted.fix is not None and _meet(diagnostic.range, params.range)
        ]

    @ls.feature(lsp.TEXT_DOCUMENT_HOVER)
    def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        at = params.position
        for noted, diagnostic in opened.get(params.text_document.uri, _Open()).found:
            if _meet(diagnostic.range, lsp.Range(at, at)):
                text = lsp.MarkupContent(lsp.MarkupKind.PlainText, explained(noted.finding.rule))
                return lsp.Hover(text, diagnostic.range)
        return None

    return ls


def _path(uri: str) -> str | None:
    from pygls import uris

    path = uris.to_fs_path(uri)
    return path if path is not None and path.endswith(".py") else None


def _look(house: Lint, path: str, text: str) -> tuple[list[Noted], bool]:
    """The findings in a file, and whether it does not parse."""
    # A path below the working directory as the command line would name it: globs of the configuration are relative.
    below = os.path.relpath(path, house.cwd)
    name = path if below.startswith("..") else below
    linter = Linter(house.plan())
    linter.give(name, text.encode("utf-8", "replace") if "coding" not in text[:500] else _encoded(text))
    outcome = Outcome({name: linter.lint(name)}, 1)
    shown = [n for n in house.judge(outcome).shown if n.finding.where.file == name]
    return shown, not outcome.results[name].read


def _encoded(text: str) -> bytes:
    """The text in the encoding that it declares itself."""
    import tokenize

    data = text.encode("utf-8", "replace")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return text.encode(encoding, "replace")
    except (SyntaxError, LookupError):
        return data


def _diagnostic(noted: Noted, lines: list[str]) -> lsp.Diagnostic:
    from lsprotocol import types as lsp

    from osler.catalogue import RULES

    severities = {
        Severity.ERROR: lsp.DiagnosticSeverity.Error,
        Severity.WARNING: lsp.DiagnosticSeverity.Warning,
        Severity.INFO: lsp.DiagnosticSeverity.Information,
    }
    finding = noted.finding
    where = finding.where
    start = _position(lines, where.line or 1, (where.character or 1) - 1)
    end = _position(lines, where.end_line or where.line or 1, (where.end_character or (where.character or 1) + 1) - 1)
    rule = RULES.get(finding.rule)
    link = rule.links[0] if rule is not None and rule.links else None
    return lsp.Diagnostic(
        lsp.Range(start, end),
        f"{finding.message}\n{finding.fix}" if finding.fix else finding.message,
        severity=severities[finding.severity],
        code=finding.rule,
        code_description=lsp.CodeDescription(link) if link else None,
        source="osler",
    )


def _action(uri: str, noted: Noted, diagnostic: lsp.Diagnostic, lines: list[str]) -> lsp.CodeAction:
    from lsprotocol import types as lsp

    assert noted.fix is not None
    edits = []
    for edit in noted.fix.edits:
        start = _position(lines, edit.line, _characters(lines, edit.line, edit.column))
        end = _position(lines, edit.end_line, _characters(lines, edit.end_line, edit.end_column))
        edits.append(lsp.TextEdit(lsp.Range(start, end), edit.text))
    doubt = "" if noted.fix.safe else " (look at what it changes)"
    return lsp.CodeAction(
        f"osler: {noted.fix.summary}{doubt}",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=noted.fix.safe,
        edit=lsp.WorkspaceEdit(changes={uri: edits}),
    )


def _position(lines: list[str], line: int, character: int) -> lsp.Position:
    """A place of 1-based line and 0-based character, in UTF-16 units as the protocol counts unless told otherwise."""
    from lsprotocol import types as lsp

    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return lsp.Position(line - 1, len(text[:character].encode("utf-16-le", "surrogatepass")) // 2)


def _characters(lines: list[str], line: int, column: int) -> int:
    """Characters behind a column in UTF-8 bytes."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return len(text.encode("utf-8", "replace")[:column].decode("utf-8", "replace"))


def _meet(a: lsp.Range, b: lsp.Range) -> bool:
    return _pair(a.start) <= _pair(b.end) and _pair(b.start) <= _pair(a.end)


def _pair(at: lsp.Position) -> tuple[int, int]:
    return at.line, at.character


def explained(rule: str) -> str:
    """What `osler explain` prints of a rule."""
    from rich.console import Console

    from osler.catalogue import RULES
    from osler.core.settings import options
    from osler.render.explain import print_explain

    text = io.StringIO()
    print_explain(RULES[rule], Console(file=text, width=100, color_system=None), options())
    return text.getvalue()
