from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.core.finding import Finding, Severity, Where
from osler.render import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\nand more", "plain\ttext\nand more"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("a\x00b\x07c\x7fd\x9be", "abcd"),
        ("\u202eevil\u2066", "evil"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\ufffd"),
        ("a\rb\r\nc", "ab\nc"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert words.clean(text) == expected


@given(st.text(st.characters(codec=None)))
def test_clean_text_encodes_and_holds_no_control(text: str) -> None:
    out = words.clean(text)
    out.encode("utf-8")
    assert not any(ord(c) < 32 and c not in "\n\t" for c in out)
    assert "\x1b" not in out and "\x9b" not in out


def test_an_unfinished_escape_is_not_slow() -> None:
    assert "\x1b" not in words.clean("\x1b]" * 20_000)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"),
        (1234567, "1234567"),
        (0.98231, "0.9823"),
        (5.0, "5"),
        (1e-12, "1e-12"),
        (1e30, "1e+30"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (True, "yes"),
        (None, "none"),
    ],
)
def test_figure(value: object, expected: str) -> None:
    assert words.figure(value) == expected


def test_evidence_is_flattened_and_cut() -> None:
    facts = {"input": {"min": 0.0, "shape": [32, 1]}, "ratios": list(range(20)), "empty": {}}
    assert words.evidence(facts) == [
        ("input.min", "0"),
        ("input.shape", "[32, 1]"),
        ("ratios", "[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]"),
        ("empty", "{}"),
    ]


def test_place() -> None:
    assert words.place(Where("/a/b/train.py", 3), "/a") == "b/train.py:3"
    assert words.place(Where("/ab/train.py", 3), "/a") == "/ab/train.py:3"
    assert words.place(Where(module="net.2", parameter="net.2.weight")) == "parameter net.2.weight"
    assert words.place(Where()) == ""


def test_circumstances_take_the_finding_s_step() -> None:
    assert words.circumstances(Where(module="a", op="aten::log"), 7) == ["module a", "step 7", "aten::log"]
    assert words.circumstances(Where(step=3), 7) == ["step 3"]


def test_cost() -> None:
    assert words.cost({"ratio": 1.018}) == "watching cost 1.8 %"
    assert words.cost({"ratio": 0.5}) == "watching measured at a ratio of 0.500"
    assert words.cost({"ratio": math.nan}) == ""
    assert words.cost({}) == ""


def test_tally() -> None:
    from osler.core.finding import Confidence

    findings = [Finding("r", s, Confidence.DEFINITE, "") for s in (Severity.INFO, Severity.ERROR, Severity.ERROR)]
    assert words.tally(findings) == "2 errors, 1 info"
    assert words.tally([]) == "no findings"


def test_a_start_in_seconds_is_shown_as_a_date() -> None:
    assert words.moment(1.7e9).startswith("2023-11-1")
    assert words.moment("2026-01-02T03:04:05") == "2026-01-02T03:04:05"
    assert words.moment(None) == words.moment(float("nan")) == ""
