"""`osler cases` as a user types it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from osler.cases import execute, runner
from osler.cases.command import app, complete_ids

from .fakes import MARKED_LINE, a_finding, report_of

Make = Callable[..., Path]
Cases = Callable[..., Result]


@pytest.fixture
def cases(
    casebook: Path, fake_osler: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """A function that runs `osler cases ARGS… --casebook CASEBOOK` with the stand-in for `osler run`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "Options", functools.partial(runner.Options, osler_run=fake_osler))
    monkeypatch.setattr(execute, "OSLER_RUN", fake_osler)

    def run(*args: str, where: Path | None = casebook) -> Result:
        return CliRunner().invoke(app, [*args, *(["--casebook", str(where)] if where else [])])

    return run


def test_verify_passes(cases: Cases, make_case: Make, make_healthy: Make, tmp_path: Path) -> None:
    make_case("good")
    make_healthy()
    result = cases("verify", "-j", "2", "--json", "out.json", "--junit", "out.xml")
    assert result.exit_code == 0, result.output
    assert "4 of 4 verified: 4 PASS" in result.stdout
    assert "[4/4] PASS" in result.stderr
    data = json.loads((tmp_path / "out.json").read_text())
    assert [(v["id"], v["budget"]) for v in data["verdicts"]] == [
        ("good", "none"),
        ("good", "default"),
        ("fine", "none"),
        ("fine", "default"),
    ]
    assert ET.parse(tmp_path / "out.xml").getroot().tag == "testsuites"


def test_verify_fails_with_the_reason_and_the_command(cases: Cases, make_case: Make, casebook: Path) -> None:
    make_case("bad", faulty=report_of(a_finding(line=2)))
    result = cases("verify", "--budget", "none")
    assert result.exit_code == 1
    assert "WRONG_LINE bad (budget none): reported at repro.py:2; the fault is at repro.py:8" in result.stdout
    assert f"osler cases verify bad --budget none --casebook {casebook}" in result.stdout
    assert cases("verify", "--budget", "default").exit_code == 0


def test_verify_chooses(cases: Cases, make_case: Make, make_healthy: Make) -> None:
    for id in ("one", "two"):
        make_case(id)
    make_healthy()

    def ran(*args: str) -> list[str]:
        result = cases("verify", *args, "--budget", "default", "--json", "-")
        assert result.exit_code == 0
        return [v["id"] for v in json.loads(result.stdout)["verdicts"]]

    assert ran() == ["one", "two", "fine"]
    assert ran("--no-healthy") == ["one", "two"]
    assert ran("two") == ["two"]
    assert ran("two", "--healthy") == ["two", "fine"]
    assert ran("_healthy/fine") == ["fine"]
    assert ran("t*") == ["two"]
    make_case("log-of-zero")
    assert ran("log-of-zero") == ["log-of-zero"]
    assert ran("--rule", "log-of-zero") == ["log-of-zero", "one", "two"]


def test_resume(cases: Cases, make_case: Make) -> None:
    make_case("one")
    cases("verify", "--budget", "none")
    result = cases("verify", "--resume")
    assert "PASS one (budget none) (passed before)" in result.stderr
    assert result.stderr.count("passed before") == 1


def test_skipped_is_said_and_no_failure(cases: Cases, make_case: Make) -> None:
    toml = make_case("one") / "case.toml"
    toml.write_text(toml.read_text().replace("needs = []", 'needs = ["no-such-package-here"]'))
    result = cases("verify")
    assert result.exit_code == 0
    assert "skipped one: no-such-package-here is not installed" in result.stdout
    assert "2 SKIPPED" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("verify", "oen"), "no case, healthy script or rule with a case is called 'oen'; closest: one"),
        (("show", "oen"), "closest: one"),
        (("run", "oen"), "closest: one"),
        (("verify", "--json", "no/such/folder.json"), "no/such is no folder"),
        (("verify", "--json", "-", "--junit", "-"), "cannot share stdout"),
        (("verify", "--rule", "log-of-zeor"), "no rule is called 'log-of-zeor'"),
        (("verify", "--rule", "dead-relu"), "no case shows dead-relu"),
        (("run", "*"), "names 2 cases; name one: one, two"),
    ],
)
def test_bad_usage_is_one_line(cases: Cases, make_case: Make, args: tuple[str, ...], message: str) -> None:
    make_case("one")
    make_case("two")
    result = cases(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith("osler: ") and result.stderr.count("\n") == 1
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("args", [("verify", "--budget", "5%"), ("verify", "-j", "0"), ("run", "one", "--dirty")])
def test_bad_options(cases: Cases, args: tuple[str, ...]) -> None:
    assert cases(*args).exit_code == 2


def test_nothing_to_verify(cases: Cases, tmp_path: Path) -> None:
    assert "nothing to verify" in cases("verify").stderr
    result = cases("verify", where=tmp_path / "nowhere")
    assert (result.exit_code, result.stderr) == (2, f"osler: {tmp_path / 'nowhere'} is no folder\n")


def test_a_broken_folder_stops_the_library_but_not_another_case(cases: Cases, make_case: Make) -> None:
    make_case("good")
    make_case("broken", toml="[case]\nid = 3\n")
    result = cases("verify")
    assert result.exit_code == 2
    assert "osler: broken/case.toml: [case] lacks 'title'\n" in result.stderr
    assert cases("verify", "good", "--budget", "none").exit_code == 0
    assert cases("verify", "broken").exit_code == 2


def test_list(cases: Cases, make_case: Make, make_healthy: Make) -> None:
    make_case("one")
    make_healthy()
    text = cases("list").stdout
    assert "one" in text and "log-of-zero" in text and "_healthy/fine" in text
    data = json.loads(cases("list", "--json").stdout)
    assert data["cases"][0]["marker"] == {"file": "repro.py", "line": MARKED_LINE}
    assert data["cases"][0]["expect"]["finding"] == {"rule": "log-of-zero", "root": True, "by_step": 3}
    assert [h["id"] for h in data["healthy"]] == ["fine"]


def test_list_by_rule(cases: Cases, make_case: Make, make_healthy: Make) -> None:
    make_case("one")
    make_healthy()
    data = json.loads(cases("list", "--json", "--rule", "log-of-zero").stdout)
    assert ([c["id"] for c in data["cases"]], data["healthy"]) == (["one"], [])
    assert cases("list", "--rule", "dead-relu").stdout == "no cases\n"
    result = cases("list", "--rule", "log-of-zeor")
    assert result.exit_code == 2
    assert "log-of-zero" in result.stderr and result.stderr.count("\n") == 1


def test_show(cases: Cases, make_case: Make, make_healthy: Make) -> None:
    folder = make_case("one", also='also = ["dead-relu"]')
    make_healthy()
    text = cases("show", "one").stdout
    assert text.startswith("one: A fault\n")
    assert '> 8  print("ran")  # fault-here' in text
    assert "expected  log-of-zero, as a root, by step 3, at repro.py:8, beside dead-relu" in text
    assert "--- faulty.py" not in text
    (folder / "faulty.py").write_text("a = 1\nb = 0\n")
    (folder / "clean.py").write_text("a = 1\nb = 1\n")
    assert "--- faulty.py\n+++ clean.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 0\n+b = 1\n" in cases("show", "one").stdout
    assert cases("show", "fine").stdout.startswith("fine: A fine script\n")


def test_run_lets_the_script_speak_and_judges_its_end(
    cases: Cases, make_case: Make, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = make_case(
        "one", repro="import sys  # fault-here\nprint(sys.argv)\nsys.exit(len(sys.argv[1]))\n", exit_code=8
    )
    assert cases("run", "one").exit_code == 0
    assert "['repro.py', '--faulty']" in capfd.readouterr().out
    result = cases("run", "one", "--clean", "--budget", "none")
    assert result.exit_code == 1
    assert "['repro.py', '--clean']" in capfd.readouterr().out
    assert "the script ended with 7; one says 0" in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == [
        "case.toml",
        "report--clean.json",
        "report--faulty.json",
        "repro.py",
    ]


def test_new_makes_a_case_that_is_invalid_until_filled_in(cases: Cases, casebook: Path) -> None:
    result = cases("new", "my-fault", "--rule", "log-of-zero", "--dir", str(casebook), where=None)
    assert result.exit_code == 0, result.stderr
    assert f"osler cases verify my-fault --casebook {casebook}" in result.stdout
    folder = casebook / "my-fault"
    assert (folder / "repro.py").read_text().count("TODO") == 3
    for flag in ("--faulty", "--clean"):
        (folder / f"report{flag}.json").write_text(json.dumps(report_of()))
    result = cases("verify", "--budget", "none")
    assert result.exit_code == 1
    assert "INVALID my-fault (budget none): the fault was not there" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("new", "My Fault", "--rule", "log-of-zero"), "'My Fault' is no name for a case"),
        (("new", "one", "--rule", "log-of-zeor"), "log-of-zero"),
        (("new", "one", "--rule", "log-of-zero"), "one exists already"),
    ],
)
def test_new_refuses(cases: Cases, make_case: Make, casebook: Path, args: tuple[str, ...], message: str) -> None:
    make_case("one")
    result = cases(*args, "--dir", str(casebook), where=None)
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_completion_lists_ids(make_case: Make, casebook: Path) -> None:
    for id in ("half-cast", "half-sum", "clip"):
        make_case(id)
    (casebook / "half-sum" / "case.toml").write_text("not toml [")
    context = typer.Context(typer.main.get_command(app))
    context.params = {"casebook": str(casebook)}
    assert complete_ids(context, "half") == ["half-cast", "half-sum"]
    context.params = {"casebook": str(casebook / "nowhere")}
    assert complete_ids(context, "half") == []


def test_the_command_loads_quickly_and_without_heavy_modules() -> None:
    heavy = ("torch", "numpy", "pydantic", "rich")
    code = f"import sys, osler.cases.command; print([m for m in {heavy} if m in sys.modules])"
    start = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
    assert time.perf_counter() - start < 3  # 0.07 s on an idle machine
