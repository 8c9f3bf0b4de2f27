"""Findings and fixes as the protocol has them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from osler.core.finding import Severity
from osler.integrations.lsp.sources import Part, Source
from osler.lint.result import Noted

if TYPE_CHECKING:
    from lsprotocol import types as lsp


def diagnostic(noted: Noted, part: Part) -> lsp.Diagnostic:
    """A finding in the document that shows it."""
    from lsprotocol import types as lsp

    from osler.catalogue import RULES

    severities = {
        Severity.ERROR: lsp.DiagnosticSeverity.Error,
        Severity.WARNING: lsp.DiagnosticSeverity.Warning,
        Severity.INFO: lsp.DiagnosticSeverity.Information,
    }
    finding = noted.finding
    where, lines = finding.where, part.lines
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


def action(source: Source, noted: Noted, diagnostic: lsp.Diagnostic) -> lsp.CodeAction:
    """The fix of a finding."""
    from lsprotocol import types as lsp

    assert noted.fix is not None
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in noted.fix.edits:
        part, line = source.behind(edit.line)
        end_line = edit.end_line - part.offset
        start = _position(part.lines, line, _characters(part.lines, line, edit.column))
        end = _position(part.lines, end_line, _characters(part.lines, end_line, edit.end_column))
        changes.setdefault(part.uri, []).append(lsp.TextEdit(lsp.Range(start, end), edit.text))
    doubt = "" if noted.fix.safe else " (look at what it changes)"
    return lsp.CodeAction(
        f"osler: {noted.fix.summary}{doubt}",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=noted.fix.safe,
        edit=lsp.WorkspaceEdit(changes=changes),
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


def meet(a: lsp.Range, b: lsp.Range) -> bool:
    """Whether two ranges share a place."""
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
