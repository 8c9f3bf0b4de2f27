from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osler.cases.expression import MAX_LENGTH, ExpressionError, evaluate, names, parse

EVIDENCE = {"norm": 2.0, "n": 3, "loss": "NaN", "top": "Infinity", "low": "-Infinity", "kind": "adam", "seen": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("norm > 1e3", False),
        ("norm * 1000 >= 2e3", True),
        ("0 < norm < n", True),
        ("0 < norm < 1", False),
        ("norm + n == 5 and not norm > 2", True),
        ("norm > 1e9 or n - 1 == norm", True),
        ("-norm < 0 < +norm", True),
        ("abs(-n) == max(1, 2, n) and min(norm, n) == 2", True),
        ("n / norm == 1.5", True),
        ("kind == 'adam'", True),
        ("kind != 'adam'", False),
        ("seen", True),
        ("seen == True and not False", True),
        ("top > 1e308 and low < -1e308", True),
        ("top == 'Infinity'", True),
        ("low == '-Infinity'", True),
        ("loss != loss", True),
        ("loss == loss", False),
        ("loss == 'NaN'", True),
        ("norm == 'NaN'", False),
        ("loss != 'NaN'", False),
        ("loss > 0 or loss <= 0", False),
        ("n > 5 and missing > 1", False),
    ],
)
def test_value(text: str, expected: bool) -> None:
    assert evaluate(text, EVIDENCE) is expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch pwned')",
        "open('x')",
        "norm.__class__",
        "norm.__class__.__mro__",
        "().__class__.__bases__[0].__subclasses__()",
        "[x for x in (1,)]",
        "(lambda: 1)()",
        "min.__self__",
        "min(*seen)",
        "min(1, key=abs)",
        "min()",
        "abs",
        "norm ** 9 ** 9 ** 9",
        "1 << 9999999",
        "norm % 2",
        "norm // 2",
        "norm if seen else n",
        "(norm := 3) > 2",
        "norm in kind",
        "norm is None",
        "{'a': 1} == 1",
        "[1] == 1",
        "(1, 2) == 1",
        "kind[0] == 'a'",
        "f'{norm}' == '2'",
        "b'a' == 1",
        "1j == 1",
        "... == 1",
        "None == 1",
        "~n == 1",
        "exec('1')",
        "eval('1')",
        "norm > 1; n",
        "x = 1",
        "import os",
        "",
        "norm >",
        "\0",
        "norm > 1\nn > 1",
    ],
)
def test_hostile_text_is_refused(text: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExpressionError):
        evaluate(text, EVIDENCE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    ["(" * 240 + "1" + ")" * 240 + " > 0", "not " * 120 + "seen", "-" * 400 + "1 < 0", "+".join("1" * 200) + " > 0"],
)
def test_deep_text_is_refused_at_once(text: str) -> None:
    start = time.perf_counter()
    try:
        evaluate(text, EVIDENCE)
    except ExpressionError:
        pass
    assert time.perf_counter() - start < 0.5


def test_too_long_is_refused() -> None:
    with pytest.raises(ExpressionError, match=f"{MAX_LENGTH} are allowed"):
        parse("1 > 0 or " * 100 + "1 > 0")


def test_arithmetic_on_strings_cannot_fill_the_memory() -> None:
    with pytest.raises(ExpressionError, match="not a number"):
        evaluate("'a' * 999999999 == 'b'", EVIDENCE)


def test_integers_cannot_grow_without_bound() -> None:
    text = "*".join(["999999999"] * 40)
    assert evaluate(f"{text} > 1", EVIDENCE) is True
    with pytest.raises(ExpressionError, match="too large"):
        evaluate("*".join(["9" * 400]) + " / 0.5 > 1", EVIDENCE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nrom > 1", "no 'nrom'; it has kind, "),
        ("norm", "neither true nor false"),
        ("norm + 1", "neither true nor false"),
        ("norm and seen", "compare it"),
        ("norm / (n - 3) > 1", "divides by zero"),
        ("kind > 1", "no order"),
        ("-kind == 1", "not a number"),
        ("abs(1, 2) == 1", "one number"),
    ],
)
def test_message(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        evaluate(text, EVIDENCE)


@pytest.mark.parametrize("value", [None, [1, 2], {"a": 1}])
def test_only_plain_values_are_compared(value: object) -> None:
    with pytest.raises(ExpressionError, match="can be compared"):
        evaluate("x > 1", {"x": value})


def test_names() -> None:
    assert names("abs(a - b) > 1e3 and c == 'd'") == {"a", "b", "c"}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abn1.()'\"[]{}<>=!+-*/%@^&|~:, _\n\\", max_size=40))
def test_any_text_gives_a_bool_or_an_expression_error(text: str) -> None:
    try:
        assert evaluate(text, {"a": 1.0, "b": "NaN", "n": 2}) in (True, False)
    except ExpressionError as err:
        assert "\n" not in str(err)
