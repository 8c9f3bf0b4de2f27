"""Strict JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.core.jsonable import dumps, number, strict, word

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(VALUES)
def test_any_value_becomes_json_that_others_accept(value: object) -> None:
    text = dumps(value)
    text.encode("ascii")
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))


@given(VALUES)
def test_strict_is_stable(value: object) -> None:
    assert strict(strict(value)) == strict(value)


@given(st.floats())
def test_numbers_come_back(value: float) -> None:
    back = number(json.loads(dumps(value)))
    assert back == value or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1.5, 1.5), (True, True)]
)
def test_words(value: float, text: object) -> None:
    assert strict(value) == text
    if isinstance(text, str):
        assert word(value) == text


@pytest.mark.parametrize("value", [True, None, "nan", "inf", "1", [], {}])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number(value)


def test_containers_keys_and_strangers() -> None:
    assert strict({1: (1, 2), "s": {3, 1, 2}}) == {"1": [1, 2], "s": [1, 2, 3]}
    assert strict(Path("a") / "b") == "a/b"
    assert strict(frozenset("ba")) == ["a", "b"]


def test_odd_file_names_encode() -> None:
    assert json.loads(dumps("caf\udce9")) == "caf\udce9"


def test_indentation() -> None:
    assert dumps({"a": 1}, indent=1) == '{\n "a": 1\n}'
