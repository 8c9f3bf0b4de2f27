"""What the user asked not to hear is left out, counted, and mistakes in the asking are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.app import ignores
from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings


def finding(rule: str, file: str | None = "train.py", line: int | None = 1) -> Finding:
    return Finding(rule, Severity.ERROR, Confidence.DEFINITE, f"{rule} here", Where(file=file, line=line))


def kept(report: Report, settings: Settings | None = None, text: str = "", base: Path = Path("/home/u")) -> list[str]:
    out = ignores.apply(report, settings or Settings(), lambda _: text, base)
    return [f.rule for f in out.findings]


def test_nothing_asked_nothing_changed() -> None:
    report = Report({"kind": "run"}, findings=[finding("dead-relu")], notes=["a note"])
    out = ignores.apply(report, Settings(), lambda _: "x = 1\n")
    assert out == report
    assert "suppressed" not in out.subject


def test_select_and_ignore() -> None:
    report = Report({}, findings=[finding("dead-relu"), finding("update-ratio"), finding("activation-collapse")])
    assert kept(report, Settings(select=["dead-relu", "update-ratio"], ignore=["update-ratio"])) == ["dead-relu"]
    out = ignores.apply(report, Settings(ignore=["dead-relu"]), lambda _: None)
    assert out.subject["suppressed"] == 1
    assert out.notes == ["1 finding is not shown: left out by the configuration or by `# osler: ignore[…]` comments"]
    assert report.subject == {} and len(report.findings) == 3


def test_rules_that_nobody_wants_are_not_missed_either() -> None:
    rows = [NotChecked("dead-relu", "too few steps"), NotChecked("rank 1", "was killed", is_rule=False)]
    out = ignores.apply(Report({}, not_checked=rows), Settings(ignore=["dead-relu"]), lambda _: None)
    assert [n.what for n in out.not_checked] == ["rank 1"]


@pytest.mark.parametrize(
    ("glob", "file", "hit"),
    [
        ("train.py", "train.py", True),
        ("train.py", "src/train.py", True),
        ("src/*", "src/a/train.py", True),
        ("src/*.py", "/home/u/src/train.py", True),
        ("**/train.py", "train.py", True),
        ("./src/*", "src/train.py", True),
        ("src/*", "tests/train.py", False),
        ("*.ipynb", "train.py", False),
        ("/opt/lib/*", "/opt/lib/x.py", True),
    ],
)
def test_per_file(glob: str, file: str, hit: bool) -> None:
    report = Report({}, findings=[finding("dead-relu", file), finding("update-ratio", file)])
    settings = Settings(per_file_ignores={glob: ["dead-relu"]})
    assert kept(report, settings) == (["update-ratio"] if hit else ["dead-relu", "update-ratio"])


def test_a_finding_without_a_file_is_kept() -> None:
    report = Report({}, findings=[finding("dead-relu", None, None)])
    assert kept(report, Settings(per_file_ignores={"*": ["dead-relu"]})) == ["dead-relu"]


def test_comment_on_the_line_counts_for_its_rules_only() -> None:
    text = "a = 1\nloss.backward()  # osler: ignore[dead-relu, update-ratio] on purpose\nb = 2\n"
    report = Report({}, findings=[finding("dead-relu", line=2), finding("activation-collapse", line=2)])
    assert kept(report, text=text) == ["activation-collapse"]
    assert kept(Report({}, findings=[finding("dead-relu", line=1), finding("dead-relu", line=3)]), text=text) == [
        "dead-relu",
        "dead-relu",
    ]


def test_comment_counts_for_its_whole_statement() -> None:
    text = "def f(x):\n    y = g(\n        x,\n        x,\n    )  # osler: ignore[dead-relu]\n    return y\n"
    for line, expected in ((1, 1), (2, 0), (3, 0), (5, 0), (6, 1)):
        assert len(kept(Report({}, findings=[finding("dead-relu", line=line)]), text=text)) == expected


def test_a_string_is_no_comment() -> None:
    text = 's = "# osler: ignore[dead-relu]"\n'
    assert kept(Report({}, findings=[finding("dead-relu")]), text=text) == ["dead-relu"]


def test_comments_that_do_nothing_are_named() -> None:
    text = "# osler: ignore[dead-relu]\na = 1  # osler: ignore\nb = 2  # osler: ignore[dead-rellu, update-ratio]\n"
    out = ignores.apply(Report({}, findings=[finding("dead-relu", line=2)]), Settings(), lambda _: text)
    assert len(out.findings) == 1
    assert len(out.notes) == 3
    assert out.notes[0].startswith("train.py:1: the ignore comment stands on a line of its own")
    assert out.notes[1].startswith("train.py:2: the ignore comment names no rule")
    assert out.notes[2].startswith(
        "train.py:3: the ignore comment does nothing: no rule is called 'dead-rellu'; closest:"
    )
    assert "dead-relu" in out.notes[2]


@pytest.mark.parametrize("rest", ["x = (\n", "'''never closed\n", "  what\n indent\n", "x = $\n", "\x00\n"])
def test_source_that_cannot_be_tokenized_keeps_the_comments_before(rest: str) -> None:
    text = "a = 1  # osler: ignore[dead-relu]\n" + rest
    assert kept(Report({}, findings=[finding("dead-relu")]), text=text) == []


def test_after_the_bad_place_lines_are_read_one_by_one() -> None:
    text = "x = 1\n)\n'''\nb = 2  # osler: ignore[dead-relu]\n"
    assert kept(Report({}, findings=[finding("dead-relu", line=4)]), text=text) == []


def test_source_reads_what_is_there(tmp_path: Path) -> None:
    script = tmp_path / "latin.py"
    script.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n")
    assert ignores.source(str(script)) == "# -*- coding: latin-1 -*-\nx = 'é'\n"
    assert ignores.source(str(tmp_path / "none.py")) is None
    assert ignores.source(str(tmp_path)) is None
    assert ignores.source("<string>") is None
    assert ignores.source("a\0b") is None
