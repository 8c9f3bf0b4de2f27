"""Known findings are matched by rule, file, code and occurrence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.lint.baseline import Baseline, NoBaseline
from osler.lint.result import Noted


def noted(line: int, source: str, rule: str = "r", file: str = "a.py") -> Noted:
    return Noted(Finding(rule, Severity.ERROR, Confidence.DEFINITE, "m", Where(file=file, line=line)), source)


def test_round_trip_and_shifts(here: Path) -> None:
    path = Path("known.json")
    Baseline.of([noted(3, "f( x )"), noted(9, "f( x )"), noted(4, "g()")], path).save(path)
    data = json.loads(path.read_text())
    assert [e["code"] for e in data["findings"]] == ["f( x )", "g()"]
    again = Baseline.load(path)
    # Moved, reindented, and one more of the same.
    now = [noted(13, "f(  x )"), noted(19, "f( x )"), noted(29, "f( x )"), noted(1, "h()")]
    assert [n.finding.where.line for n in again.new(now)] == [29, 1]
    assert again.stale(now, ["a.py"]) == 1
    assert again.stale(now, ["b.py"]) == 1  # a.py does not exist
    Path("a.py").touch()
    assert again.stale(now, ["b.py"]) == 0
    before = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == before


def test_files_are_named_from_the_baseline_s_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "sub").mkdir()
    path = here / "known.json"
    Baseline.of([noted(1, "f()", file="sub/a.py")], path).save(path)
    monkeypatch.chdir(here / "sub")
    assert Baseline.load(Path("../known.json")).new([noted(1, "f()", file="a.py")]) == []
    assert len(Baseline.load(Path("../known.json")).new([noted(1, "f()", rule="other", file="a.py")])) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no baseline"),
        ("[]", "does not have the form"),
        ('{"osler_baseline": 9, "findings": []}', "another version"),
        ('{"osler_baseline": 1, "findings": [{"file": 1}]}', "does not have the form"),
        ("\x00\x01", "is no baseline"),
    ],
)
def test_what_is_no_baseline(here: Path, text: str, told: str) -> None:
    Path("b.json").write_text(text)
    with pytest.raises(NoBaseline, match=told):
        Baseline.load(Path("b.json"))


def test_a_missing_baseline_says_how_to_make_one(here: Path) -> None:
    with pytest.raises(NoBaseline, match="--write-baseline"):
        Baseline.load(Path("b.json"))
