"""A rule of the tests' own, so that the driver is tried whatever the rules find."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from osler.catalogue import RULES
from osler.core.finding import Confidence, Severity
from osler.core.rule import Rule
from osler.lint.facts import Facts
from osler.lint.hit import Edit, Fix, Hit
from osler.syntax.values import Site

NAME = "test-load"


def rule(name: str, routes: tuple[str, ...] = ("lint",)) -> Rule:
    return Rule(
        name,
        "tests",
        Severity.WARNING,
        "A thing is loaded.",
        "It hurts.",
        "Mend it.",
        "load()",
        "save()",
        "",
        routes=routes,
    )


def loads(facts: Facts) -> Iterator[Hit]:
    """`thing.load(...)` without `safe=`: a fault at the name, mended by one more argument."""
    for call in facts.module.called("thing.load"):
        if call.keyword("safe") is not None:
            continue
        node = call.node
        end = node.end_lineno or 0, (node.end_col_offset or 0) - 1
        put = ", safe=True" if node.args or node.keywords else "safe=True"
        sure = Confidence.POSSIBLE if call.keyword("maybe") is not None else Confidence.DEFINITE
        yield Hit(
            Site(facts.module.path, node.lineno, node.col_offset),
            "It is loaded without safe.",
            "Give safe=True.",
            sure,
            end_line=node.func.end_lineno,
            end_column=node.func.end_col_offset,
            fix=Fix((Edit(*end, *end, put),), call.keyword("unsafe") is None, "add safe=True"),
        )


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """The checks in force: `test-load` alone; a test may add more."""
    own = [SimpleNamespace(RULE=NAME, CALLS=frozenset({"load"}), check=loads)]
    monkeypatch.setitem(RULES, NAME, rule(NAME))
    monkeypatch.setitem(RULES, "test-run", rule("test-run", ("run",)))
    monkeypatch.setitem(RULES, "test-both", rule("test-both", ("run", "lint")))
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("osler.lint") and hasattr(module, "CHECKS"):
            monkeypatch.setattr(module, "CHECKS", own)
    monkeypatch.setattr("osler.lint.linter.Linter.__init__.__defaults__", (own,))
    monkeypatch.setattr("osler.lint.registry.RULES", frozenset({NAME, "test-both"}))
    return own


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with its own cache."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".osler").mkdir()
    return tmp_path
