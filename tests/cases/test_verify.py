"""Each verdict, from real subprocesses and reports that have its flaw."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import osler
from osler.cases.execute import BudgetName, Processes, Stopped, environment
from osler.cases.library import load_case, load_healthy
from osler.cases.verdict import Outcome, Verdict
from osler.cases.verify import own_traceback, verify, verify_healthy
from osler.core.finding import Confidence, Severity

from .fakes import REPRO, a_finding, report_of

Make = Callable[..., Path]
Judge = Callable[..., Verdict]


@pytest.fixture
def judge(fake_osler: tuple[str, ...]) -> Judge:
    def run(folder: Path, budget: BudgetName = "none", **options: object) -> Verdict:
        return verify(load_case(folder), budget, osler_run=fake_osler, **options)  # type: ignore[arg-type]

    return run


def test_pass(make_case: Make, judge: Judge) -> None:
    folder = make_case()
    for budget in ("none", "default"):
        verdict = judge(folder, budget)
        assert (verdict.outcome, verdict.reason, verdict.reasons) == (Outcome.PASS, "", [])
        assert (verdict.rule, verdict.rule_right, verdict.line_right, verdict.step) == ("log-of-zero", True, True, 2)
        assert verdict.silent is True
        assert verdict.overhead == 1.02
        assert verdict.found == "repro.py:8"
        assert verdict.seconds > 0.02
    assert not (folder / "evidence.json").exists()


def test_the_budget_reaches_osler(make_case: Make, judge: Judge) -> None:
    folder = make_case()
    (folder / "report--faulty-default.json").write_text(json.dumps(report_of()))
    assert judge(folder, "none").outcome is Outcome.PASS
    assert judge(folder, "default").outcome is Outcome.MISSED


def test_missed(make_case: Make, judge: Judge) -> None:
    info = a_finding("dead-relu", severity=Severity.INFO)
    verdict = judge(make_case(faulty=report_of(info)))
    assert verdict.outcome is Outcome.MISSED
    assert verdict.reason == "log-of-zero was not reported; dead-relu was"
    assert (verdict.rule_right, verdict.line_right) == (False, False)


def test_wrong_root(make_case: Make, judge: Judge) -> None:
    faulty = report_of(a_finding("divide-by-zero", step=1), a_finding(step=2))
    verdict = judge(make_case(faulty=faulty, also='also = ["divide-by-zero"]'))
    assert verdict.outcome is Outcome.WRONG_ROOT
    assert verdict.reason == "log-of-zero was reported as a symptom of divide-by-zero"
    assert verdict.rule_right is False


def test_late(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(faulty=report_of(a_finding(step=4))))
    assert (verdict.outcome, verdict.step) == (Outcome.LATE, 4)
    assert verdict.reason == "first seen at step 4, expected by step 3"


def test_late_without_a_step(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(faulty=report_of(a_finding(step=None))))
    assert verdict.outcome is Outcome.LATE
    assert "without a step" in verdict.reason


def test_wrong_line_counts_without_limits_only(make_case: Make, judge: Judge) -> None:
    folder = make_case(faulty=report_of(a_finding(line=5)))
    verdict = judge(folder, "none")
    assert (verdict.outcome, verdict.line_right) == (Outcome.WRONG_LINE, False)
    assert verdict.reason == "reported at repro.py:5; the fault is at repro.py:8"
    verdict = judge(folder, "default")
    assert (verdict.outcome, verdict.line_right, verdict.rule_right) == (Outcome.PASS, False, True)


def test_wrong_file(make_case: Make, judge: Judge) -> None:
    finding = a_finding()
    report = report_of(finding)
    report["findings"][0]["where"]["file"] = "/elsewhere/repro.py"  # type: ignore[index]
    assert judge(make_case(faulty=report)).outcome is Outcome.WRONG_LINE


def test_place(make_case: Make, judge: Judge) -> None:
    folder = make_case(
        faulty=report_of(a_finding(direction="forward", module="net.2")),
        place=', direction = "backward", module = "net.2"',
    )
    verdict = judge(folder, "none")
    assert verdict.outcome is Outcome.WRONG_LINE
    assert verdict.reason == "reported with direction forward instead of backward"
    assert judge(folder, "default").outcome is Outcome.PASS


def test_the_best_of_several_findings_is_judged(make_case: Make, judge: Judge) -> None:
    faulty = report_of(a_finding(line=3, step=0), a_finding(line=8, step=3), a_finding(line=5, step=1))
    verdict = judge(make_case(faulty=faulty))
    assert (verdict.outcome, verdict.step) == (Outcome.PASS, 3)


def test_twin_with_a_warning_is_noisy(make_case: Make, judge: Judge) -> None:
    clean = report_of(a_finding("dead-relu", severity=Severity.WARNING))
    verdict = judge(make_case(clean=clean))
    assert (verdict.outcome, verdict.silent) == (Outcome.NOISY, False)
    assert verdict.reason == "the clean twin gives dead-relu (warning) at repro.py:8"


def test_twin_with_its_own_rule_is_noisy_at_any_level(make_case: Make, judge: Judge) -> None:
    own = a_finding(severity=Severity.INFO, confidence=Confidence.POSSIBLE)
    assert judge(make_case(clean=report_of(own))).outcome is Outcome.NOISY


def test_twin_may_have_infos_and_what_is_only_possible(make_case: Make, judge: Judge) -> None:
    clean = report_of(
        a_finding("dead-relu", severity=Severity.INFO),
        a_finding("divide-by-zero", severity=Severity.ERROR, confidence=Confidence.POSSIBLE),
    )
    assert judge(make_case(clean=clean)).outcome is Outcome.PASS


def test_unexpected_roots(make_case: Make, judge: Judge) -> None:
    faulty = report_of(a_finding(), a_finding("dead-relu", severity=Severity.WARNING))
    verdict = judge(make_case("a", faulty=faulty))
    assert (verdict.outcome, verdict.extra_roots) == (Outcome.NOISY, ["dead-relu"])
    assert verdict.rule_right is True and verdict.line_right is True
    assert judge(make_case("b", faulty=faulty, also='also = ["dead-relu"]')).outcome is Outcome.PASS


def test_invalid_when_the_fault_is_not_there(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(repro=REPRO.replace("5.0 if faulty", "0.1 if faulty")))
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason.startswith("the fault was not there: `value > 1` is false after `osler run --budget none")


def test_invalid_when_the_twin_has_it_too(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(repro=REPRO.replace("else 0.5", "else 2.0")))
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason.startswith("the twin has the fault too")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pass", "evidence.json was not written"),
        ('file.write("{\\"value\\": NaN}")', 'NaN must be the string "NaN"'),
        ('file.write("[1]")', "evidence.json is no JSON object"),
        ('json.dump({"other": 1}, file)', "the evidence has no 'value'"),
    ],
)
def test_invalid_without_evidence(make_case: Make, judge: Judge, line: str, message: str) -> None:
    repro = REPRO.replace('json.dump({"value": value}, file)', line)
    if line == "pass":
        repro = repro.replace('open("evidence.json", "w")', 'open("other.json", "w")')
    verdict = judge(make_case(repro=repro))
    assert verdict.outcome is Outcome.INVALID
    assert message in verdict.reason


def test_evidence_of_one_side_is_not_read_for_the_other(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(repro=REPRO.replace("value = ", "if not faulty:\n    sys.exit(0)\nvalue = ")))
    assert verdict.outcome is Outcome.INVALID
    assert "--clean`: evidence.json was not written" in verdict.reason


def test_crashed_when_the_exit_code_is_another(make_case: Make, judge: Judge) -> None:
    verdict = judge(make_case(repro=REPRO + "if faulty:\n    raise ValueError('no')\n"))
    assert verdict.outcome is Outcome.CRASHED
    assert verdict.reason.endswith("repro.py --faulty` ended with 1 instead of 0: ValueError: no")


def test_an_exit_code_can_be_expected(make_case: Make, judge: Judge) -> None:
    killed = REPRO + "import os\nif faulty:\n    os.kill(os.getpid(), 9)\n"
    assert judge(make_case("a", repro=REPRO + "sys.exit(7 if faulty else 0)\n", exit_code=7)).outcome is Outcome.PASS
    assert judge(make_case("b", repro=killed, exit_code=-9)).outcome is Outcome.PASS
    assert judge(make_case("c", repro=killed, exit_code=137)).outcome is Outcome.PASS


def test_crashed_without_a_report(make_case: Make, judge: Judge) -> None:
    folder = make_case()
    (folder / "report--clean.json").unlink()
    verdict = judge(folder)
    assert verdict.outcome is Outcome.CRASHED
    assert "JSON report was not written" in verdict.reason


def test_crashed_when_it_takes_too_long(make_case: Make, judge: Judge) -> None:
    start = time.perf_counter()
    verdict = judge(make_case(repro=REPRO + "import time\nif faulty:\n    time.sleep(60)\n"), timeout_s=1.0)
    assert time.perf_counter() - start < 20
    assert verdict.outcome is Outcome.CRASHED
    assert "was ended after 1 s" in verdict.reason


def test_worst_failure_first_and_none_lost(make_case: Make, judge: Judge) -> None:
    loud = report_of(a_finding("dead-relu"))
    verdict = judge(make_case(faulty=report_of(a_finding(line=1, step=9)), clean=loud))
    assert verdict.outcome is Outcome.NOISY
    assert len(verdict.reasons) == 3


def test_skipped(make_case: Make, judge: Judge) -> None:
    folder = make_case()
    toml = folder / "case.toml"
    toml.write_text(toml.read_text().replace("needs = []", 'needs = ["no-such-package-here"]'))
    verdict = judge(folder)
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, "no-such-package-here is not installed")


def test_bare_runs_both_sides_without_osler(make_case: Make, judge: Judge) -> None:
    # A fault that is there only under osler would prove nothing about osler.
    folder = make_case(repro=REPRO.replace("5.0 if", "float(__import__('os').environ.get('WATCHED', 0)) if"))
    assert judge(folder).outcome is Outcome.PASS
    verdict = judge(folder, bare=True)
    assert verdict.outcome is Outcome.INVALID
    assert verdict.reason.endswith("is false after `python repro.py --faulty`")


def test_own_traceback() -> None:
    home = Path(osler.__file__).parent
    head = "Traceback (most recent call last):\n"
    user = '  File "/home/a/train.py", line 3, in <module>\n    f()\n'
    ours = f'  File "{home / "training" / "recorder.py"}", line 9, in record\n    x.y\n'
    book = f'  File "{home / "casebook" / "a" / "repro.py"}", line 9, in f\n    x.y\n'
    assert own_traceback(f"noise\n{head}{user}{ours}AttributeError: y\n")
    assert not own_traceback(f"{head}{user}{ours}{user}ValueError: no\n")
    assert not own_traceback(f"{head}{user}{book}ValueError: no\n")
    assert not own_traceback(f"{head}{user}ValueError: no\nsomething\n{ours}")
    assert own_traceback(f"{head}{user}ValueError: no\n\nDuring handling …\n\n{head}{ours}TypeError: x\n")
    assert not own_traceback("no traceback")


def test_crashed_when_osler_shows_a_traceback(make_case: Make, judge: Judge) -> None:
    path = Path(osler.__file__).parent / "training" / "recorder.py"
    text = f'Traceback (most recent call last):\n  File "{path}", line 1, in f\n    x\nNameError: x\n'
    verdict = judge(make_case(repro=REPRO + f"print({text!r}, file=sys.stderr)\n"))
    assert verdict.outcome is Outcome.CRASHED
    assert "traceback of osler's: NameError: x" in verdict.reason


def test_crashed_when_osler_steps_aside(make_healthy: Make, casebook: Path, fake_osler: tuple[str, ...]) -> None:
    report = report_of()
    report["notes"] = ["osler failed while looking (KeyError: 3); the training goes on unwatched"]
    make_healthy(report)
    verdict = verify_healthy(load_healthy(casebook)[0], "none", osler_run=fake_osler)
    assert verdict.outcome is Outcome.CRASHED
    assert verdict.reason.endswith("osler failed while looking (KeyError: 3); the training goes on unwatched")


def test_healthy(make_healthy: Make, casebook: Path, fake_osler: tuple[str, ...]) -> None:
    make_healthy(report_of(a_finding("dead-relu", severity=Severity.INFO)))
    verdict = verify_healthy(load_healthy(casebook)[0], "default", osler_run=fake_osler)
    assert (verdict.outcome, verdict.kind, verdict.silent) == (Outcome.PASS, "healthy", True)


@pytest.mark.parametrize(
    ("report", "script", "outcome", "message"),
    [
        (report_of(a_finding("dead-relu")), "", Outcome.NOISY, "it gives dead-relu (error) at repro.py:8"),
        (report_of(steps=0), "", Outcome.INVALID, "osler saw no step of the 10 it makes"),
        (report_of(), "raise SystemExit(3)", Outcome.CRASHED, "ended with 3 instead of 0"),
    ],
)
def test_healthy_failures(
    make_healthy: Make,
    casebook: Path,
    fake_osler: tuple[str, ...],
    report: dict[str, object],
    script: str,
    outcome: Outcome,
    message: str,
) -> None:
    make_healthy(report, script=script)
    verdict = verify_healthy(load_healthy(casebook)[0], "none", osler_run=fake_osler)
    assert verdict.outcome is outcome
    assert message in verdict.reason


def test_environment_is_cleaned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OSLER_DISABLE", "1")
    monkeypatch.setenv("OSLER_RUN_DIR", "/nowhere")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", "/abs"]))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    env = environment(threads=2)
    assert not [k for k in env if k.startswith("OSLER_")]
    assert env["PYTHONPATH"].split(os.pathsep) == [str(tmp_path / "lib"), "/abs"]
    assert env["OMP_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in environment()


def test_stop_ends_even_a_script_that_ignores_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osler.cases.execute._GRACE_S", 0.3)
    script = "import signal, time, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    script += "pathlib.Path('up').touch(); time.sleep(60)"
    processes = Processes()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            processes.run([sys.executable, "-c", script], tmp_path, environment(), 60, tmp_path)
        except Stopped as err:
            raised.append(err)

    thread = threading.Thread(target=run)
    start = time.perf_counter()
    thread.start()
    while not (tmp_path / "up").exists():
        time.sleep(0.01)
    processes.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert time.perf_counter() - start < 10
    assert len(raised) == 1
    with pytest.raises(Stopped):
        processes.run([sys.executable, "-c", ""], tmp_path, environment(), 60, tmp_path)
