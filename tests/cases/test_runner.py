from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from osler.cases import files, progress, tables
from osler.cases.library import load_cases, load_healthy
from osler.cases.progress import Progress, fingerprint
from osler.cases.runner import Job, Options, Outcomes, run_all
from osler.cases.screen import PlainLines, progress_on
from osler.cases.verdict import Outcome, Verdict

from .fakes import report_of

Make = Callable[..., Path]


class Seen:
    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    def done(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)


@pytest.fixture
def jobs(casebook: Path, make_case: Make, make_healthy: Make) -> list[Job]:
    """Two cases, one of which misses its rule, and a healthy script, each under both budgets."""
    make_case("good")
    make_case("bad", faulty=report_of())
    make_healthy()
    subjects = [*load_cases(casebook), *load_healthy(casebook)]
    return [Job(s, b) for s in subjects for b in ("none", "default")]


def run(jobs: list[Job], fake: tuple[str, ...], where: Path, *, fresh: bool = True) -> tuple[Outcomes, Seen]:
    seen = Seen()
    store = Progress(where, fresh=fresh)
    return run_all(jobs, Options(jobs=3, osler_run=fake), store, seen), seen


def test_all_are_judged_and_come_in_order(jobs: list[Job], fake_osler: tuple[str, ...], tmp_path: Path) -> None:
    outcomes, seen = run(jobs, fake_osler, tmp_path / "p.json")
    assert [(v.id, v.budget, v.outcome.value) for v in outcomes.verdicts] == [
        ("bad", "none", "MISSED"),
        ("bad", "default", "MISSED"),
        ("good", "none", "PASS"),
        ("good", "default", "PASS"),
        ("fine", "none", "PASS"),
        ("fine", "default", "PASS"),
    ]
    assert len(seen.verdicts) == 6
    assert (outcomes.exit_code, outcomes.interrupted, outcomes.wanted) == (1, False, 6)
    assert [v.budget for v in outcomes.failures] == ["default", "none"]


def test_resume_runs_what_failed_or_changed(jobs: list[Job], fake_osler: tuple[str, ...], tmp_path: Path) -> None:
    store = tmp_path / "p.json"
    run(jobs, fake_osler, store)
    outcomes, _ = run(jobs, fake_osler, store, fresh=False)
    assert {(v.id, v.budget) for v in outcomes.verdicts if v.resumed} == {
        ("good", "none"),
        ("good", "default"),
        ("fine", "none"),
        ("fine", "default"),
    }
    good = next(j.subject.folder for j in jobs if j.subject.id == "good")
    (good / "repro.py").write_text((good / "repro.py").read_text() + "\n")
    outcomes, _ = run(jobs, fake_osler, store, fresh=False)
    assert {v.id for v in outcomes.verdicts if v.resumed} == {"fine"}
    outcomes, _ = run(jobs, fake_osler, store, fresh=True)
    assert not [v for v in outcomes.verdicts if v.resumed]


def test_a_pass_is_forgotten_when_it_fails_later(tmp_path: Path) -> None:
    store = Progress(tmp_path / "p.json", fresh=True)
    store.record(Verdict("a", "none", Outcome.PASS), "print")
    assert Progress(tmp_path / "p.json", fresh=False).passed("case", "a", "none", "print") is not None
    assert store.passed("case", "a", "none", "another") is None
    assert store.passed("case", "a", "default", "print") is None
    store.record(Verdict("a", "none", Outcome.MISSED), "print")
    assert Progress(tmp_path / "p.json", fresh=False).passed("case", "a", "none", "print") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99, "passed": {}}', '{"format": 1, "passed": {"a": 3}}'])
def test_a_damaged_store_is_an_empty_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(text)
    store = Progress(tmp_path / "p.json", fresh=False)
    assert store.passed("case", "a", "none", "print") is None
    store.record(Verdict("a", "none", Outcome.PASS), "print")
    assert store.passed("case", "a", "none", "print") is not None


def test_a_store_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Progress(tmp_path / "file" / "p.json", fresh=True)
    store.record(Verdict("a", "none", Outcome.PASS), "print")
    assert "cannot be written" in store.problem
    assert store.passed("case", "a", "none", "print") is not None


def test_the_store_is_private_and_ignored_by_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Progress(fresh=True).record(Verdict("a", "none", Outcome.PASS), "print")
    assert stat.S_IMODE(Path(".osler").stat().st_mode) == 0o700
    assert Path(".osler/.gitignore").read_text() == "*\n"
    assert sorted(p.name for p in Path(".osler").iterdir()) == [".gitignore", "cases-progress.json"]


def test_fingerprint_follows_content_names_and_osler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("1")
    prints = [fingerprint(tmp_path)]
    prints.append(fingerprint(tmp_path, "none"))
    (tmp_path / "a.py").write_text("2")
    prints.append(fingerprint(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    prints.append(fingerprint(tmp_path))
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "b.pyc").write_text("x")
    assert fingerprint(tmp_path) == prints[-1]
    monkeypatch.setattr("osler.__version__", "99")
    progress._surroundings.cache_clear()
    prints.append(fingerprint(tmp_path))
    progress._surroundings.cache_clear()
    assert len(set(prints)) == 5


def test_a_case_that_cannot_be_run_is_a_verdict(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes, _ = run(jobs[:1], (str(tmp_path / "no-such-program"),), tmp_path / "p.json")
    (verdict,) = outcomes.verdicts
    assert verdict.outcome is Outcome.CRASHED
    assert "could not be run" in verdict.reason


INTERRUPTED = """
import sys
from pathlib import Path
from osler.cases.library import load_cases
from osler.cases.progress import Progress
from osler.cases.runner import Job, Options, run_all
from osler.cases.screen import PlainLines

jobs = [Job(c, "none") for c in load_cases(Path(sys.argv[1]))]
progress = Progress(Path(sys.argv[2]), fresh=False)
options = Options(jobs=2, osler_run=(sys.executable, sys.argv[3]))
outcomes = run_all(jobs, options, progress, PlainLines(len(jobs), sys.stderr))
print([v.id for v in outcomes.verdicts], outcomes.interrupted)
sys.exit(outcomes.exit_code)
"""


def running(pid: int) -> bool:
    """Whether the process runs; a dead one that its new parent has not collected yet does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_scripts_and_keeps_what_passed(
    casebook: Path, make_case: Make, fake_osler: tuple[str, ...], tmp_path: Path, number: signal.Signals
) -> None:
    make_case("quick")
    pid_file = tmp_path / "pid"
    slow = make_case("slow")
    (slow / "repro.py").write_text(
        f"import os, time  # fault-here\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-c", INTERRUPTED, str(casebook), str(tmp_path / "p.json"), fake_osler[1]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("[1/2] PASS quick (budget none) ")
    while not (pid_file.exists() and pid_file.read_text()):
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out.strip()) == (130, "['quick'] True")
    assert "Traceback" not in err
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 5
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not running(pid)
    assert "case:quick:none" in json.loads((tmp_path / "p.json").read_text())["passed"]


def some_verdicts() -> list[Verdict]:
    good = Verdict("good", "none", Outcome.PASS, "", "case", "a-rule", True, True, 3, True, 2.5)
    late = Verdict(
        "late", "none", Outcome.LATE, "late by 2", "case", "late", True, True, 9, True, 1.0, reasons=["late"]
    )
    miss = Verdict("good", "default", Outcome.MISSED, "not <there> \x00", "case", "a-rule", False, False, silent=True)
    miss.reasons = ["not <there> \x00", "and more"]
    crash = Verdict("late", "default", Outcome.CRASHED, "boom", "case", "late", reasons=["boom"])
    loud = Verdict("fine", "none", Outcome.NOISY, "it gives x", "healthy", silent=False, reasons=["it gives x"])
    skip = Verdict("fine", "default", Outcome.SKIPPED, "torch is not installed", "healthy")
    return [good, miss, late, crash, loud, skip]


def test_table() -> None:
    out = io.StringIO()
    tables.show(some_verdicts(), Console(file=out, width=60))
    lines = [line.split() for line in out.getvalue().splitlines() if line.strip()]
    assert ["good", "a-rule", "right", "right", "3", "silent", "2.5", "WRONG", "WRONG", "–", "silent", "0.0"] in lines
    assert ["late", "same", "right", "right", "9", "late", "silent", "1.0", "crashed", "–", "–", "–", "0.0"] in lines
    assert ["total", "2/2", "2/2", "2/2", "4", "0/2", "0/2", "1/2", "0"] in lines
    assert ["fine", "WRONG", "0.0", "skipped"] in lines
    assert ["total", "0/1", "0", "0/0", "0"] in lines


def test_failures_come_worst_first_with_the_command_that_repeats_them() -> None:
    outcomes = Outcomes(some_verdicts(), 6)
    assert [v.outcome.value for v in outcomes.failures] == ["CRASHED", "MISSED", "NOISY", "LATE"]
    out = io.StringIO()
    tables.show_failures(outcomes.failures, Console(file=out, width=200), "my cases")
    lines = out.getvalue().splitlines()
    assert lines[0] == "CRASHED late (budget default): boom"
    assert lines[1].strip() == "osler cases verify late --budget default --casebook 'my cases'"
    assert lines[2].startswith("MISSED good (budget default): not <there>")
    assert lines[2].endswith("(and 1 more)")
    assert lines[5].strip() == "osler cases verify _healthy/fine --budget none --casebook 'my cases'"


def test_json_can_be_read_back() -> None:
    data = json.loads(files.to_json(Outcomes(some_verdicts(), 7, interrupted=True)))
    assert (data["schema"], data["wanted"], data["interrupted"]) == (1, 7, True)
    assert data["totals"] == {"PASS": 1, "MISSED": 1, "LATE": 1, "CRASHED": 1, "NOISY": 1, "SKIPPED": 1}
    assert [Verdict.from_dict(v) for v in data["verdicts"]] == some_verdicts()


def test_junit_is_xml_that_counts_right() -> None:
    root = ET.fromstring(files.to_junit(some_verdicts()).split("\n", 1)[1])
    counts = {s.get("name"): [s.get(k) for k in ("tests", "failures", "errors", "skipped")] for s in root}
    assert counts == {
        "case, budget none": ["2", "1", "0", "0"],
        "case, budget default": ["2", "1", "1", "0"],
        "healthy, budget none": ["1", "1", "0", "0"],
        "healthy, budget default": ["1", "0", "0", "1"],
    }
    failure = root.find(".//testcase[@name='good']/failure")
    assert failure is not None
    assert (failure.get("message"), failure.text) == ("not <there> ?", "not <there> ?\nand more")


def test_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with progress_on(out, 12) as watcher:
        assert isinstance(watcher, PlainLines)
        for verdict in some_verdicts()[:2]:
            watcher.done(verdict)
    assert out.getvalue().splitlines() == [
        "[ 1/12] PASS good (budget none) 2.5 s",
        "[ 2/12] MISSED good (budget default) 0.0 s: not <there> \x00",
    ]


def test_a_bar_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with progress_on(out, 2) as watcher:
        for verdict in some_verdicts()[:2]:
            watcher.done(verdict)
    text = out.getvalue()
    assert "2/2" in text
    assert "MISSED" in text and "good (budget default): not <there>" in text
