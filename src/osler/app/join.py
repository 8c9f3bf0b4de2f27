"""What the source says about what a run has shown: the line of a missing call, and faults that both have seen.

A run sees that gradients explode; the source sees the loop in which nobody clears them. Where the catalogue says that a fault
of the source brings about a fault of the run, the former joins the report and the diagnosis puts it first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from osler.catalogue import RULES
from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.settings.lint import Lint
from osler.lint.linter import Linter
from osler.lint.plan import Plan

SECONDS = 5.0  # of work on one file
FILES = 20  # that are looked at


def files(script: str | None, findings: Iterable[Finding], cwd: Path) -> list[str]:
    """The script, and the other files that findings name, as far as they are Python files that are there.

    What was changed is no matter here: the run has just ended.
    """
    named = [script, *(f.where.file for f in findings)]
    paths = dict.fromkeys(str((cwd / name).resolve()) for name in named if name and name.endswith(".py"))
    return [path for path in paths if Path(path).is_file()][:FILES]


def seen_in_source(
    paths: Sequence[str], torch: tuple[int, int] | None = None, settings: Lint | None = None
) -> list[Finding]:
    """What lint finds in the files and is at least probable, each once."""
    linter = Linter(Plan(torch, dataclasses.replace(settings or Lint(), seconds=SECONDS)))
    out: dict[str, Finding] = {}
    for path in paths:
        for noted in linter.lint(path).noted:
            if noted.finding.confidence >= Confidence.PROBABLE:
                out.setdefault(noted.finding.key, noted.finding)
    return list(out.values())


def join(run: Sequence[Finding], source: Sequence[Finding]) -> tuple[list[Finding], list[str]]:
    """The findings of the source that explain one of the run's, and a note on each fault that both have seen.

    Args:
        run: what was found while the script ran.
        source: what was found in its files.

    Returns:
        Findings to add, as the run's own are written (the file as the interpreter knew it); notes.
    """
    loud = [f for f in run if f.severity >= Severity.WARNING and f.confidence >= Confidence.PROBABLE]
    added: list[Finding] = []
    notes: list[str] = []
    for seen in source:
        both = next((f for f in run if f.rule == seen.rule and _same_place(f, seen)), None)
        if both is not None:
            notes.append(
                f"{seen.rule} at {both.where.file}:{both.where.line} was seen both while it ran and in the source"
            )
            continue
        effects = sorted({f.rule for f in loud if f.rule in RULES[seen.rule].causes})
        if not effects or seen.severity < Severity.WARNING:
            continue
        facts = {**seen.evidence, "seen": "in the source", "explains": effects}
        added.append(dataclasses.replace(seen, evidence=facts, where=_plain(seen, run)))
    return added, notes


def _same_place(run: Finding, source: Finding) -> bool:
    """Both name the same line, or stand in the same file and the run knows no line."""
    if run.where.file is None or source.where.file is None:
        return False
    if Path(run.where.file).resolve() != Path(source.where.file).resolve():
        return False
    return run.where.line is None or run.where.line == source.where.line


def _plain(seen: Finding, run: Sequence[Finding]) -> Where:
    """The place with the file named as the run's findings name it."""
    names = {str(Path(f.where.file).resolve()): f.where.file for f in run if f.where.file}
    file = seen.where.file or ""
    return dataclasses.replace(seen.where, file=names.get(str(Path(file).resolve()), file))
