"""One file: which checks can find something in it, what they find, as findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from osler.catalogue import RULES
from osler.core.finding import Finding, Where
from osler.lint.facts import Facts
from osler.lint.hit import Hit, with_lines
from osler.lint.registry import CHECKS, Check
from osler.lint.source import place
from osler.syntax.module import Module
from osler.syntax.values import Site

Failed = Callable[[str, Exception], None]


def look(facts: Facts, checks: Iterable[Check] = CHECKS, failed: Failed | None = None) -> list[tuple[Finding, Hit]]:
    """What the checks find in a file, by place; each place once a rule, as the surest of its hits has it.

    Args:
        facts: of the file.
        checks: who looks.
        failed: is told the rule and the error of a check that fails, and the others go on; by default the error is raised.
    """
    written = facts.project.words(facts.module)
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
    """A hit as the rest of osler knows it: columns in characters, 1-based; lines of a notebook within their cell.

    Other places are named as they are seen from the finding's own.
    """
    module = _module(facts, hit.site.file)
    end_line = hit.end_line if hit.end_line is not None else hit.site.line
    end = hit.end_column
    cell, line = place(module.cells, hit.site.line)
    offset = hit.site.line - line
    here = _Here(hit.site.file, cell, facts)
    where = Where(
        file=hit.site.file,
        line=line,
        character=_character(module, hit.site.line, hit.site.column),
        end_line=end_line - offset,
        end_character=len(module.line(end_line)) + 1 if end is None else _character(module, end_line, end),
        cell=cell,
    )
    return Finding(
        rule=rule,
        severity=RULES[rule].severity if hit.severity is None else hit.severity,
        confidence=hit.confidence,
        message=with_lines(hit.message, here.words),
        where=where,
        evidence={name: here.fact(value) for name, value in hit.evidence.items()},
        fix=with_lines(hit.advice, here.words),
        touches=hit.touches,
    )


def _module(facts: Facts, file: str) -> Module:
    """The module of a place: the file that is looked at, or one that it was followed into."""
    return facts.project.at(file) or facts.module


@dataclass(frozen=True, slots=True)
class _Here:
    """The place of a finding, from which other places are seen: file and cell."""

    file: str
    cell: int | None
    facts: Facts

    def words(self, file: str, line: int) -> str:
        """A place as it is read in a sentence: `line 40`, `line 40 of engine.py`, `cell 3, line 2`."""
        cell, line = place(_module(self.facts, file).cells, line)
        away = file != self.file
        in_cell = f"cell {cell}, " if cell is not None and (away or cell != self.cell) else ""
        return f"{in_cell}line {line}" + (f" of {self._named(file)}" if away else "")

    def fact(self, value: object) -> object:
        """A fact that is a place as a number where that is a line of the same text, else as `engine.py:40` or `cell 3:2`."""
        if not isinstance(value, Site):
            return value
        cell, line = place(_module(self.facts, value.file).cells, value.line)
        file = [self._named(value.file)] if value.file != self.file else []
        within = [f"cell {cell}"] if cell is not None else []
        return ":".join([*file, *within, str(line)]) if file or within else line

    def _named(self, file: str) -> str:
        """A file as it lies from the finding's folder, whatever the working directory; one far away by its whole path."""
        try:
            way = os.path.relpath(file, os.path.dirname(self.file) or os.curdir)
        except ValueError:  # on another drive
            return file
        return file if os.path.isabs(file) and len(file) < len(way) else way


def _character(module: Module, line: int, column: int) -> int:
    """`ast` counts columns in UTF-8 bytes; people and editors count characters from 1."""
    return len(module.line(line).encode("utf-8")[:column].decode("utf-8", "replace")) + 1
