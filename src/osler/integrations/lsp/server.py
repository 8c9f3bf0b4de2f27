"""The server itself: what it does when the editor tells of something."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from osler.app.errors import UserError
from osler.app.lint import Wishes
from osler.app.lint.judge import Judge
from osler.app.lint.setup import Setup
from osler.integrations.lsp import messages, sources
from osler.integrations.lsp.sources import Part, Source
from osler.lint.guarded import Guarded
from osler.lint.result import FileResult, Noted
from osler.lint.session import Outcome

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

DEBOUNCE_S = 0.3  # between the last key and the look


@dataclass(slots=True)
class _Shown:
    """What is shown in a document: what was looked at, its findings."""

    source: Source
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
    judge = Judge(Setup(wishes))
    bench = Guarded(judge.setup.plan)
    ready = server(judge, bench)
    # Whatever else prints must not come between the messages; the streams are closed at the end, ours stay open.
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        ready.start_io(source, sink)
    finally:
        bench.close()


def server(judge: Judge, bench: Guarded) -> LanguageServer:
    """A server that shows what is judged worth telling of what the bench finds."""
    from lsprotocol import types as lsp
    from pygls.lsp.server import LanguageServer

    from osler import __version__

    ls = LanguageServer(
        "osler",
        __version__,
        text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
        notebook_document_sync=lsp.NotebookDocumentSyncOptions(
            [lsp.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
        ),
    )
    opened: dict[str, set[str]] = {}  # files and notebooks, each with the documents in which something is shown
    shown: dict[str, _Shown] = {}
    turn = asyncio.Lock()

    async def look(uri: str, version: int | None = None) -> None:
        """Look at what is open there; only as long as it has this version, where one is given."""
        async with turn:
            if uri not in opened or version not in (None, sources.version(ls.workspace, uri)):
                return
            source = sources.source(ls.workspace, uri, judge.setup.cwd)
            if source is None:
                return
            result, noted = await asyncio.to_thread(_look, judge, bench, source)
        if uri not in opened or sources.version(ls.workspace, uri) != source.version:
            return  # closed, or edited meanwhile: the next look tells
        for trouble in result.troubles:
            if trouble.line is None:  # silence must not look like health; what does not parse the editor shows itself
                ls.window_log_message(lsp.LogMessageParams(lsp.MessageType.Warning, trouble.at(source.name)))
        if not result.read:
            return  # half a line typed: what was found before is still the best there is
        halves = {trouble.cell for trouble in result.troubles if trouble.cell is not None}
        for part in source.parts:
            if part.cell not in halves:
                show(source, part, noted)
        for gone in opened[uri] - {part.uri for part in source.parts}:
            hide(gone)
        opened[uri] = {part.uri for part in source.parts}

    def show(source: Source, part: Part, noted: list[Noted]) -> None:
        own = [n for n in noted if n.finding.where.cell == part.cell]
        one = shown[part.uri] = _Shown(source, [(n, messages.diagnostic(n, part)) for n in own])
        version = sources.version(ls.workspace, part.uri)
        ls.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(part.uri, [d for _, d in one.found], version=version)
        )

    def hide(uri: str) -> None:
        shown.pop(uri, None)
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def on_open(uri: str) -> None:
        opened[uri] = set()
        await look(uri)

    async def on_change(uri: str, version: int) -> None:
        await asyncio.sleep(DEBOUNCE_S)
        await look(uri, version)

    async def on_save(uri: str) -> None:
        # What is saved may be imported by the others.
        for one in [uri, *(u for u in opened if u != uri)]:
            await look(one)

    def on_close(uri: str) -> None:
        for one in opened.pop(uri, set()):
            hide(one)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def on_open_file(params: lsp.DidOpenTextDocumentParams) -> None:
        await on_open(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def on_change_file(params: lsp.DidChangeTextDocumentParams) -> None:
        await on_change(params.text_document.uri, params.text_document.version)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def on_save_file(params: lsp.DidSaveTextDocumentParams) -> None:
        await on_save(params.text_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def on_close_file(params: lsp.DidCloseTextDocumentParams) -> None:
        on_close(params.text_document.uri)

    @ls.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    async def on_open_notebook(params: lsp.DidOpenNotebookDocumentParams) -> None:
        await on_open(params.notebook_document.uri)

    @ls.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    async def on_change_notebook(params: lsp.DidChangeNotebookDocumentParams) -> None:
        await on_change(params.notebook_document.uri, params.notebook_document.version)

    @ls.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def on_save_notebook(params: lsp.DidSaveNotebookDocumentParams) -> None:
        await on_save(params.notebook_document.uri)

    @ls.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def on_close_notebook(params: lsp.DidCloseNotebookDocumentParams) -> None:
        on_close(params.notebook_document.uri)

    @ls.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
    def on_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        one = shown.get(params.text_document.uri)
        if one is None:
            return []
        return [
            messages.action(one.source, noted, diagnostic)
            for noted, diagnostic in one.found
            if noted.fix is not None and messages.meet(diagnostic.range, params.range)
        ]

    @ls.feature(lsp.TEXT_DOCUMENT_HOVER)
    def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        at = params.position
        one = shown.get(params.text_document.uri)
        for noted, diagnostic in one.found if one is not None else ():
            if messages.meet(diagnostic.range, lsp.Range(at, at)):
                text = lsp.MarkupContent(lsp.MarkupKind.PlainText, messages.explained(noted.finding.rule))
                return lsp.Hover(text, diagnostic.range)
        return None

    @ls.feature(lsp.SHUTDOWN)
    def on_shutdown(*params: object) -> None:
        opened.clear()
        bench.close()  # a look that goes on would keep the editor waiting

    return ls


def _look(judge: Judge, bench: Guarded, source: Source) -> tuple[FileResult, list[Noted]]:
    """What looking at a source gave, and what of it is to be shown there."""
    result = bench.lint(source.name, source.data)
    verdict = judge.verdict(Outcome({source.name: result}, 1))
    return result, [n for n in verdict.shown if n.finding.where.file == source.name]
