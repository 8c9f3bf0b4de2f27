"""Ignore comments, and those that ignore nothing."""

from __future__ import annotations

import json
from pathlib import Path

from osler.lint.linter import Linter
from osler.lint.plan import Plan
from osler.lint.result import FileResult
from osler.lint.unused import Ignored, ignore, unused


def look(*files: str) -> tuple[Ignored, dict[str, FileResult]]:
    linter = Linter(Plan())
    results = {f: linter.lint(f) for f in files}
    return ignore([n for r in results.values() for n in r.noted], results, lambda _: []), results


def test_on_the_line_of_the_statement(here: Path, checks: object) -> None:
    Path("a.py").write_text(
        "import thing\n"
        "thing.load(a)  # osler: ignore[test-load] known\n"
        "thing.load(\n    a,\n)  # osler: ignore[test-load, test-both]\n"
        "thing.load(a)\n"
        "x = 1  # osler: ignore[test-load]\n"
    )
    ignored, results = look("a.py")
    assert [n.finding.where.line for n in ignored.kept] == [6]
    assert len(ignored.hidden) == 2
    assert [(c.line, rule) for _, c, rule in unused(results, ignored.used)] == [(7, "test-load")]
    told = [(c.line, rule) for _, c, rule in unused(results, ignored.used, all=True)]
    assert told == [(5, "test-both"), (7, "test-load")]


def test_rules_that_others_notice_are_not_complained_about(here: Path, checks: object) -> None:
    Path("a.py").write_text("x = 1  # osler: ignore[test-run]\ny = 2  # osler: ignore[no-such-rule]\n")
    ignored, results = look("a.py")
    assert unused(results, ignored.used, all=True) == []
    assert "does nothing" in results["a.py"].complaints[0][2]


def test_in_a_notebook_lines_count_within_the_cell(here: Path, checks: object) -> None:
    cells = [
        {"cell_type": "code", "source": "import thing\nx = 1"},
        {"cell_type": "code", "source": "thing.load(a)  # osler: ignore[test-load]\nthing.load(b)"},
        {"cell_type": "code", "source": "x = 1\ny = 2  # osler: ignore[test-load]"},
    ]
    Path("n.ipynb").write_text(json.dumps({"cells": cells}))
    ignored, results = look("n.ipynb")
    assert [(n.finding.where.cell, n.finding.where.line) for n in ignored.kept] == [(2, 2)]
    assert [(c.cell, c.line) for _, c, _ in unused(results, ignored.used)] == [(3, 2)]


def test_a_comment_in_another_file_counts(here: Path, checks: object) -> None:
    Path("a.py").write_text("import thing\nthing.load(a)\n")
    _, results = look("a.py")
    noted = results["a.py"].noted
    comments = results.pop("a.py").comments
    assert comments == []
    Path("a.py").write_text("import thing\nthing.load(a)  # osler: ignore[test-load]\n")
    from osler.lint.source import read_comments

    assert ignore(noted, {}, lambda p: read_comments(Path(p))).kept == []


def test_where_nothing_could_be_judged_nothing_is_unused(here: Path, checks: object) -> None:
    Path("a.py").write_text("def f(:  # osler: ignore[test-load]\n")
    ignored, results = look("a.py")
    assert unused(results, ignored.used) == []
