"""Each rule on its fixtures: what must be reported, what must not, and what a fix makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from osler.catalogue import RULES
from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.fix import mend
from osler.lint.look import look
from osler.lint.plan import Plan
from osler.lint.registry import CHECKS
from osler.lint.result import Noted
from osler.syntax.project import Project

FIXTURES = Path(__file__).parent / "fixtures"
EXPECT = re.compile(r"#\s*expect:\s*([\w, -]+)")
NAMES = [c.RULE for c in CHECKS]


def fixture_file(rule: str, kind: str) -> Path:
    return FIXTURES / f"{rule.replace('-', '_')}_{kind}.py"


def reported(path: Path, rule: str) -> set[int]:
    """Lines at which the rule is reported, those that are only possible left out."""
    project = Project(lambda p: p.read_text())
    module = project.open(path)
    assert module is not None, f"{path.name} does not parse"
    found = look(Facts(module, project))
    return {
        f.where.line
        for f, _ in found
        if f.rule == rule and f.confidence > Confidence.POSSIBLE and f.where.line is not None
    }


def expected(path: Path, rule: str) -> set[int]:
    lines = path.read_text().splitlines()
    marks = [(n, EXPECT.search(line)) for n, line in enumerate(lines, 1)]
    return {n for n, mark in marks if mark is not None and rule in re.split(r"[,\s]+", mark.group(1))}


@pytest.mark.parametrize("rule", NAMES)
def test_bad(rule: str) -> None:
    path = fixture_file(rule, "bad")
    wanted = expected(path, rule)
    assert wanted, f"{path.name} expects nothing"
    assert reported(path, rule) == wanted


@pytest.mark.parametrize("rule", NAMES)
def test_ok(rule: str) -> None:
    assert reported(fixture_file(rule, "ok"), rule) == set()


def test_every_check_has_a_rule_and_every_lint_rule_a_check() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {name for name, rule in RULES.items() if "lint" in rule.routes} == set(NAMES)


def test_no_fixture_is_left_over() -> None:
    kinds = {f"{name.replace('-', '_')}_{kind}.py" for name in NAMES for kind in ("bad", "ok", "fix")}
    assert {p.name for p in FIXTURES.glob("*.py")} <= kinds


@pytest.mark.parametrize("rule", [name for name in NAMES if fixture_file(name, "fix").exists()])
def test_fix(rule: str) -> None:
    """The safe fixes make the one fixture of the other; a second time they change nothing."""

    def own(noted: list[Noted], results: object) -> list[Noted]:
        return [n for n in noted if n.fix is not None and n.fix.safe and n.finding.confidence > Confidence.POSSIBLE]

    path = str(fixture_file(rule, "bad"))
    checks = [c for c in CHECKS if rule == c.RULE]
    mended = mend(path, [path], own, Plan(), checks)
    assert mended.refused == []
    assert mended.new.decode() == fixture_file(rule, "fix").read_text()
    assert mend(path, [path], own, Plan(), checks, mended.new).new == mended.new


def test_every_check_that_can_mend_has_a_fixture_of_it() -> None:
    mending = {c.RULE for c in CHECKS if "Fix(" in Path(str(c.__file__)).read_text()}  # type: ignore[attr-defined]
    assert mending == {name for name in NAMES if fixture_file(name, "fix").exists()}
