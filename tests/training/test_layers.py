"""The layer probe: rows, expectation files, differences in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from osler.training.layers import compare, read


def calls(*rows: tuple[str, str, list[str]]) -> list[dict[str, Any]]:
    return [{"module": m, "kind": k, "from": f} for m, k, f in rows]


WANT = calls(("a", "Linear", []), ("act", "ReLU", ["a"]), ("b", "Linear", ["act"]), ("act", "ReLU", ["b"]))


def test_the_same_calls_do_not_differ() -> None:
    assert compare(WANT, WANT) == []
    assert compare([], []) == []


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (WANT[:3], ["act (call 2) (ReLU) was expected and not called"]),
        ([*WANT, *calls(("c", "Linear", []))], ["c (Linear) was called and not expected"]),
        (
            calls(("a", "Conv1d", []), *((c["module"], c["kind"], c["from"]) for c in WANT[1:])),
            ["a is a Conv1d, expected Linear"],
        ),
        (
            [*WANT[:2], *calls(("b", "Linear", [])), WANT[3]],
            ["b is fed by the inputs, expected act"],
        ),
        ([WANT[2], WANT[1], WANT[0], WANT[3]], ["the calls are in another order, from b on"]),
    ],
)
def test_differences_in_words(seen: list[dict[str, Any]], words: list[str]) -> None:
    assert compare(WANT, seen) == words


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"format": 2, "calls": []}', '{"format": 1, "calls": [{"module": 3}]}', "nonsense"]
)
def test_what_is_no_expectation_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"."):
        read(file)


def test_the_rows_of_a_step(batch: Callable[[str], Any]) -> None:
    rows = batch("layers").facts("case_layers")["rows"]
    assert [(r["module"], r["kind"]) for r in rows] == [
        ("a", "Linear"),
        ("act", "ReLU"),
        ("b", "Linear"),
        ("act", "ReLU"),
        ("head", "Linear"),
    ]
    first, last = rows[0], rows[-1]
    (given,) = first["inputs"]
    assert given == {
        "shape": [3, 4],
        "dtype": "float32",
        "device": "cpu",
        "contiguous": True,
        "min": 1.0,
        "max": 1.0,
    }
    assert first["flags"] == []
    assert last["outputs"][0]["shape"] == [3, 2]
    assert last["flags"] == ["input not contiguous"]


def test_an_expectation_file(batch: Callable[[str], Any]) -> None:
    facts = batch("layers").facts("case_layers")
    path = facts["path"]
    assert facts["recorded"] == [f"the module calls of the first step are in {path}"]
    assert facts["graph"]["format"] == 1
    assert [(c["module"], c["from"]) for c in facts["graph"]["calls"]] == [
        ("a", []),
        ("act", ["a"]),
        ("b", ["act"]),
        ("act", ["b"]),
        ("head", ["act"]),
    ]
    assert facts["same"] == [f"module calls: the 5 calls are those of {path}"]
    assert facts["swapped"] == [
        "module calls: a is fed by act, expected the inputs",
        "module calls: act is fed by b, expected a",
        "module calls: b is fed by the inputs, expected act",
        "module calls: act (call 2) is fed by a, expected b",
    ]
    assert facts["skipped"] == ["module calls: b is fed by the inputs, expected act"]
    assert json.dumps(facts["graph"])


def test_files_that_cannot_be_used_are_said(batch: Callable[[str], Any]) -> None:
    facts = batch("layers").facts("case_layers")
    assert len(facts["broken"]) == len(facts["missing"]) == 1
    assert facts["broken"][0].endswith("not a file written by --record-graph")
    assert "No such file" in facts["missing"][0]
    assert facts["unwritable"][0].endswith("No such file or directory")
