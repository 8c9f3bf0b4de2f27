"""One file: which checks can find something in it, what they find, as findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from osler.catalogue import RULES
from osler.core.finding import Finding, Where
from osler.lint.facts import Facts
from osler.lint.hit import Hit
from osler.lint.registry import CHECKS, Check
from osler.syntax.module import Module

Failed = Callable[[str, Exception], None]


def look(facts: Facts, checks: Iterable[Check] = CHECKS, failed: Failed | None = None) -> list[tuple[Finding, Hit]]:
    """What the checks find in a file, by place; each place once a rule, as the surest of its hits has it.

    Args:
        facts: of the file.
        checks: who looks.
        failed: is told the rule and the error of a check that fails, and the others go on; by default the error is raised.
    """
    written = facts.module.methods.get(facts.module.tree, set())
    found: dict[str, tuple[Finding, Hit]] = {}
    for check in checks:
        if check.CALLS and not check.CALLS & written:
            continue
        try:
            for hit in check.check(facts):
                finding = to_finding(check.RULE, hit, facts)
                key = f"{finding.key}|{finding.where.character}"
                if key not in found or found[key][0].confidence < finding.confidence:
                    found[key] = (finding, hit)
        except Exception as error:
            if failed is None:
                raise
            failed(check.RULE, error)
    return sorted(found.values(), key=lambda pair: (pair[1].site, pair[0].rule))


def to_finding(rule: str, hit: Hit, facts: Facts) -> Finding:
    """A hit as the rest of osler knows it: columns in characters, 1-based; lines of a notebook within their cell."""
    module = facts.project.at(hit.site.file) or facts.module
    end_line = hit.end_line if hit.end_line is not None else hit.site.line
    end = hit.end_column
    cell = next((c for c in reversed(module.cells) if hit.site.line > c.offset), None)
    offset = 0 if cell is None else cell.offset
    where = Where(
        file=hit.site.file,
        line=hit.site.line - offset,
        character=_character(module, hit.site.line, hit.site.column),
        end_line=end_line - offset,
        end_character=len(module.line(end_line)) + 1 if end is None else _character(module, end_line, end),
        cell=None if cell is None else cell.number,
    )
    return Finding(
        rule=rule,
        severity=RULES[rule].severity if hit.severity is None else hit.severity,
        confidence=hit.confidence,
        message=hit.message,
        where=where,
        evidence=dict(hit.evidence),
        fix=hit.advice,
        touches=hit.touches,
    )


def _character(module: Module, line: int, column: int) -> int:
    """`ast` counts columns in UTF-8 bytes; people and editors count characters from 1."""
    return len(module.line(line).encode("utf-8")[:column].decode("utf-8", "replace")) + 1
