"""Findings as GitHub's workflow commands, which become annotations of the lines of a pull request.

The form: docs.github.com, *Workflow commands for GitHub Actions*, "Setting an error message".
"""

from __future__ import annotations

from osler.core.finding import Finding, Severity
from osler.render import words

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def annotation(finding: Finding) -> str:
    """One line for one finding."""
    where = finding.where
    facts: list[tuple[str, object]] = []
    if where.file is not None:
        facts.append(("file", words.path(where.file, None)))
        # The lines of a notebook's cell are none of the file's.
        if where.cell is None and where.line is not None:
            facts.append(("line", where.line))
            if where.end_line is not None:
                facts.append(("endLine", where.end_line))
            if where.character is not None:
                facts.append(("col", where.character))
                if where.end_line == where.line and where.end_character is not None:
                    facts.append(("endColumn", where.end_character))
    facts.append(("title", f"osler ({words.one_line(finding.rule)})"))
    cell = f"cell {where.cell}, line {where.line}: " if where.cell is not None else ""
    message = cell + words.sentence(finding.message)
    if finding.fix:
        message += f"\n{words.advice(finding.fix)}"
    told = ",".join(f"{name}={_property(str(value))}" for name, value in facts)
    return f"::{_LEVELS[finding.severity]} {told}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
