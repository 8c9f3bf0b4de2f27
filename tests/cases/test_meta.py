"""The join of rules, cases, detectors, thresholds and causes; the last test is the one that guards the project."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.cases import meta
from osler.cases.library import load_case
from osler.core.settings import Option

from .fakes import RULES, a_rule

Make = Callable[..., Path]


def test_a_whole_catalogue_has_no_gaps() -> None:
    assert list(meta.rule_gaps(RULES)) == []
    assert list(meta.cause_gaps(RULES)) == []


@pytest.mark.parametrize("text", ["part", "summary", "why", "fix", "bad", "good", "limits"])
def test_an_empty_text(text: str) -> None:
    rule = dataclasses.replace(RULES["dead-relu"], **{text: " \n"})
    assert list(meta.rule_gaps({"dead-relu": rule})) == [f"rule dead-relu: {text} is empty"]


def test_names_and_routes() -> None:
    assert list(meta.rule_gaps({"a": a_rule("b")})) == ["rule a: it calls itself 'b'; names are kebab-case"]
    assert list(meta.rule_gaps({"a_b": a_rule("a_b")})) == ["rule a_b: it calls itself 'a_b'; names are kebab-case"]
    assert list(meta.rule_gaps({"a": a_rule("a", routes=())})) == ["rule a: no route notices it"]
    assert list(meta.rule_gaps({"a": a_rule("a", routes=("run", "walk"))})) == ["rule a: 'walk' is no route"]


def test_causes() -> None:
    assert list(meta.cause_gaps({"a": a_rule("a", causes=("b",))})) == ["rule a: it causes 'b', which is no rule"]
    circle = {n: a_rule(n, causes=c) for n, c in {"a": ("b",), "b": ("d", "c"), "c": ("a",), "d": ()}.items()}
    assert list(meta.cause_gaps(circle)) == ["the causes form a circle: a → b → c → a"]


@pytest.mark.parametrize(
    ("edges", "circle"),
    [
        ({}, []),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, []),
        ({"a": ["a"]}, ["a", "a"]),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"a": ["nowhere"]}, []),
        ({str(i): [str(i + 1)] for i in range(5000)}, []),
    ],
)
def test_find_circle(edges: dict[str, list[str]], circle: list[str]) -> None:
    assert meta.find_circle(edges) == circle


def test_cases(make_case: Make) -> None:
    folder = make_case(also='also = ["no-such-rule"]')
    toml = folder / "case.toml"
    toml.write_text(toml.read_text().replace('source = "this test"', ""))
    assert list(meta.case_gaps(RULES, [load_case(folder)])) == [
        "rule divide-by-zero: no case expects it",
        "rule dead-relu: no case expects it",
        "case a-case: 'no-such-rule' is no rule",
        "case a-case: it has no source",
    ]
    assert "case a-case: 'log-of-zero' is no rule" in list(meta.case_gaps({}, [load_case(folder)]))


def test_thresholds() -> None:
    good = Option("a.b", 1, "doc", "source", ("dead-relu",))
    assert list(meta.threshold_gaps(RULES, [good])) == []
    bad = Option("a.b", 1, "", "source", ("dead-rleu",))
    assert list(meta.threshold_gaps(RULES, [bad])) == [
        "setting a.b: it steers 'dead-rleu', which is no rule",
        "setting a.b: doc is empty",
    ]


def test_detectors() -> None:
    rules = {"a": a_rule("a"), "b": a_rule("b", routes=("lint",)), "c": a_rule("c")}
    assert list(meta.detector_gaps(rules, {"numbers": ["a"], "idle": [], "odd": ["x"]})) == [
        "detector idle: it detects nothing",
        "detector odd: 'x' is no rule",
        "rule c: no detector names it",
    ]


def test_nothing_is_missing() -> None:
    assert meta.gaps() == []
