"""One case, both sides, under osler: is the fault there, and is it what osler says?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import osler
from osler.cases.execute import OSLER_RUN, BudgetName, Processes, Ran, run_script
from osler.cases.expression import ExpressionError, evaluate
from osler.cases.library import Case, HealthyScript
from osler.cases.needs import missing
from osler.cases.verdict import Outcome, Verdict
from osler.core.finding import Severity

Failure = tuple[Outcome, str]

_FRAME = re.compile(r'^\s+File "([^"]+)", line \d+', re.MULTILINE)
_OSLER = Path(osler.__file__).resolve().parent
_GAVE_UP = "goes on unwatched"  # in the line with which osler steps aside, on stderr or among the report's notes
_POSSIBLE = "possible"  # the confidence that users do not see unless they ask


def verify(
    case: Case,
    budget: BudgetName,
    *,
    bare: bool = False,
    timeout_s: float | None = None,
    processes: Processes | None = None,
    osler_run: Sequence[str] = OSLER_RUN,
    threads: int | None = None,
) -> Verdict:
    """Run a case's faulty side and its clean twin under osler and judge the two reports.

    Args:
        case: the case.
        budget: `none` lifts every limit of the recorder and also asks for the right line; `default` asks for the right
            rule and only records whether the line was right.
        bare: run both sides in plain Python too, and ask that the fault is there and the exit codes are the same.
        timeout_s: seconds allowed to each side; default 60 and twenty times the case's cost.
        processes: keeps hold of what is running, so that another thread can stop it.
        osler_run: the command that stands for `osler run`.
        threads: threads that numerical libraries may use.

    Raises:
        osler.cases.execute.Stopped: `processes.stop` was called.
        OSError: the temporary copy or the process could not be made.
    """
    why = missing(case.needs)
    if why:
        return Verdict(case.id, budget, Outcome.SKIPPED, why, rule=case.rule)

    def run(is_faulty: bool, under: BudgetName | None) -> Ran:
        return run_script(
            case.folder,
            case.script(is_faulty),
            budget=under,
            processes=processes or Processes(),
            timeout_s=timeout_s or 60 + 20 * case.cost_s,
            osler_run=osler_run,
            threads=threads,
            look=case.look(is_faulty),
        )

    faulty, clean = run(True, budget), run(False, budget)
    plain = (run(True, None), run(False, None)) if bare else None
    return judge(case, budget, faulty, clean, plain)


def judge(case: Case, budget: BudgetName, faulty: Ran, clean: Ran, plain: tuple[Ran, Ran] | None = None) -> Verdict:
    """The verdict on two finished runs under osler, and on the same two without it where they were made."""
    wanted = case.file.expect.finding
    failures: list[Failure] = []
    expected_code = _shell_code(case.file.inject.exit_code)
    pairs = [(faulty, clean), *([plain] if plain else [])]
    for bad, good in pairs:
        failures += _ended(bad, expected_code)
        failures += _ended(good, 0)
        failures += _in_effect(case.file.in_effect.expr, bad, good)

    verdict = Verdict(case.id, budget, Outcome.PASS, rule=case.rule)
    verdict.seconds = sum(r.seconds for pair in pairs for r in pair)
    verdict.overhead = _overhead(faulty.report)
    if faulty.report is not None:
        failures += _judge_faulty(case, budget, faulty, verdict)
    if clean.report is not None:
        noise = _noise(clean.report, case.rules)
        verdict.silent = not noise
        if noise:
            failures.append((Outcome.NOISY, f"the clean twin gives {noise}"))
    if verdict.step is not None and wanted.by_step is not None and verdict.step > wanted.by_step:
        failures.append((Outcome.LATE, f"first seen at step {verdict.step}, expected by step {wanted.by_step}"))
    return _settle(verdict, failures)


def verify_healthy(
    script: HealthyScript,
    budget: BudgetName,
    *,
    bare: bool = False,
    timeout_s: float | None = None,
    processes: Processes | None = None,
    osler_run: Sequence[str] = OSLER_RUN,
    threads: int | None = None,
) -> Verdict:
    """Run a healthy script under osler: it must end with 0, without a warning or an error, and have been watched.

    Arguments and errors are those of `verify`.
    """
    why = missing(script.needs)
    if why:
        return Verdict(script.id, budget, Outcome.SKIPPED, why, kind="healthy")

    def run(under: BudgetName | None) -> Ran:
        return run_script(
            script.folder,
            [script.file.file],
            budget=under,
            processes=processes or Processes(),
            timeout_s=timeout_s or 60 + 20 * script.cost_s,
            osler_run=osler_run,
            threads=threads,
            look=script.look,
        )

    watched = run(budget)
    plain = run(None) if bare else None
    return judge_healthy(script, budget, watched, plain)


def judge_healthy(script: HealthyScript, budget: BudgetName, watched: Ran, plain: Ran | None = None) -> Verdict:
    """The verdict on a finished run of a healthy script under osler, and on the same without it where it was made."""
    verdict = Verdict(script.id, budget, Outcome.PASS, kind="healthy")
    runs = [watched, *([plain] if plain else [])]
    verdict.seconds = sum(r.seconds for r in runs)
    verdict.overhead = _overhead(watched.report)
    failures = [f for r in runs for f in _ended(r, 0)]
    if watched.report is not None:
        noise = _noise(watched.report, frozenset())
        verdict.silent = not noise
        if noise:
            failures.append((Outcome.NOISY, f"it gives {noise}"))
        subject = watched.report.get("subject")
        if script.file.steps and isinstance(subject, dict) and subject.get("steps") == 0:
            failures.append(
                (
                    Outcome.INVALID,
                    f"osler saw no step of the {script.file.steps} it makes, so its silence proves nothing",
                )
            )
    return _settle(verdict, failures)


def _settle(verdict: Verdict, failures: Iterable[Failure]) -> Verdict:
    ordered = sorted(dict.fromkeys(failures), key=lambda f: f[0].rank)
    if ordered:
        verdict.outcome, verdict.reason = ordered[0]
        verdict.reasons = [reason for _, reason in ordered]
    return verdict


def _ended(ran: Ran, expected: int) -> list[Failure]:
    """What is wrong with how a run ended."""
    out = []
    if ran.timed_out:
        out.append((Outcome.CRASHED, f"`{ran.command}` was ended after {ran.seconds:.0f} s"))
    elif ran.exit_code != expected:
        last = _last_line(ran.stderr)
        said = f": {last}" if last else ""
        out.append((Outcome.CRASHED, f"`{ran.command}` ended with {ran.exit_code} instead of {expected}{said}"))
    elif own_traceback(ran.stderr):
        out.append((Outcome.CRASHED, f"`{ran.command}` shows a traceback of osler's: {_last_line(ran.stderr)}"))
    elif ran.report_problem:
        out.append((Outcome.CRASHED, f"`{ran.command}`: {ran.report_problem}"))
    elif gave_up := _gave_up(ran):
        out.append((Outcome.CRASHED, f"`{ran.command}`: {gave_up}"))
    return out


def _gave_up(ran: Ran) -> str:
    """The line with which osler stepped aside; its silence after that would look like health."""
    notes = ran.report.get("notes") if ran.report else None
    lines = [*(notes if isinstance(notes, list) else []), *ran.stderr.splitlines()]
    return next((str(line).strip() for line in lines if _GAVE_UP in str(line)), "")


def own_traceback(stderr: str) -> bool:
    """Whether the text holds a traceback whose innermost frame is osler's own (its casebook is not)."""
    for block in stderr.split("Traceback (most recent call last):")[1:]:
        # The frames are the indented lines; what follows the first that is not belongs to something else.
        body = re.split(r"^(?=\S)", block.lstrip("\n"), maxsplit=1, flags=re.MULTILINE)[0]
        frames = _FRAME.findall(body)
        if frames:
            path = Path(frames[-1])
            if path.is_relative_to(_OSLER) and not path.is_relative_to(_OSLER / "casebook"):
                return True
    return False


def _in_effect(expr: str, faulty: Ran, clean: Ran) -> list[Failure]:
    """What is wrong with the proof that one side has the fault and the other has not."""
    out = []
    for ran, expected in ((faulty, True), (clean, False)):
        if ran.evidence is None:
            out.append((Outcome.INVALID, f"`{ran.command}`: {ran.evidence_problem}"))
            continue
        try:
            holds = evaluate(expr, ran.evidence)
        except ExpressionError as err:
            out.append((Outcome.INVALID, f"`{ran.command}`: {err}"))
            continue
        if holds is not expected:
            what = "the fault was not there" if expected else "the twin has the fault too"
            out.append((Outcome.INVALID, f"{what}: `{expr}` is {str(holds).lower()} after `{ran.command}`"))
    return out


def _judge_faulty(case: Case, budget: BudgetName, faulty: Ran, verdict: Verdict) -> list[Failure]:
    """Compare the faulty side's findings with the expected one; what was seen is written to `verdict`."""
    wanted = case.file.expect.finding
    findings = _findings(faulty.report)
    out: list[Failure] = []
    known = {case.rule, *case.file.expect.also}
    loud_roots = {str(f.get("rule")) for f in findings if f.get("root") and _loud(f)}
    verdict.extra_roots = sorted(loud_roots - known)
    if verdict.extra_roots:
        out.append((Outcome.NOISY, f"the faulty side has unexpected causes: {', '.join(verdict.extra_roots)}"))

    candidates = [f for f in findings if f.get("rule") == wanted.rule]
    if not candidates:
        verdict.rule_right = verdict.line_right = False
        seen = ", ".join(dict.fromkeys(str(f.get("rule")) for f in findings)) or "nothing"
        out.append((Outcome.MISSED, f"{wanted.rule} was not reported; {seen} was"))
        return out

    def fits(finding: dict[str, Any]) -> tuple[bool, bool, bool, int]:
        step = _step(finding)
        place = not _misplaced(case, finding)
        return (
            bool(finding.get("root")),
            place,
            _in_place(case, finding, faulty.folder),
            -(step if step is not None else 0),
        )

    best = max(candidates, key=fits)
    verdict.step = _step(best)
    verdict.found = _place(best)
    verdict.rule_right = bool(best.get("root")) or not wanted.root
    verdict.line_right = _in_place(case, best, faulty.folder)
    if not verdict.rule_right:
        cause = next((f for f in findings if f.get("id") == best.get("caused_by")), {})
        out.append(
            (Outcome.WRONG_ROOT, f"{wanted.rule} was reported as a symptom of {cause.get('rule', 'another finding')}")
        )
    if wanted.by_step is not None and verdict.step is None:
        out.append((Outcome.LATE, f"{wanted.rule} was reported without a step, expected by step {wanted.by_step}"))
    if (budget == "none" or case.file.lint is not None) and not case.of_data:
        if not verdict.line_right:
            out.append((Outcome.WRONG_LINE, f"reported at {verdict.found}; the fault is at {case.marker}"))
        wrong = _misplaced(case, best)
        if wrong:
            out.append((Outcome.WRONG_LINE, f"reported with {wrong}"))
    if case.of_data and not verdict.line_right:
        out.append((Outcome.WRONG_LINE, f"reported with {_misplaced(case, best)}"))
    return out


def _findings(report: dict[str, Any] | None) -> list[dict[str, Any]]:
    entries = report.get("findings") if report else None
    return [f for f in entries if isinstance(f, dict)] if isinstance(entries, list) else []


def _loud(finding: dict[str, Any]) -> bool:
    """Whether users see it as a warning or an error."""
    try:
        severity = Severity.parse(str(finding.get("severity")))
    except ValueError:
        return True
    return severity >= Severity.WARNING and finding.get("confidence") != _POSSIBLE


def _noise(report: dict[str, Any], own: frozenset[str]) -> str:
    """What a side without a fault says all the same; empty when it is silent."""
    loud = [f for f in _findings(report) if _loud(f) or f.get("rule") in own]
    seen = [f"{f.get('rule')} ({f.get('severity')}) at {_place(f)}" for f in loud]
    return ", ".join(dict.fromkeys(seen))


def _misplaced(case: Case, finding: dict[str, Any]) -> str:
    """Which of direction, module, parameter and column differ from what the case expects."""
    where = _where(finding)
    expected = case.file.expect.finding
    wrong = []
    for name in ("direction", "module", "parameter", "column"):
        value = getattr(expected, name)
        if value is not None and where.get(name) != value:
            wrong.append(f"{name} {where.get(name, 'unknown')} instead of {value}")
    return ", ".join(wrong)


def _in_place(case: Case, finding: dict[str, Any], folder: Path) -> bool:
    """Whether a finding stands where the fault is: at the marked line or, in data, in the expected column."""
    return not _misplaced(case, finding) if case.of_data else _at_marker(case, finding, folder)


def _at_marker(case: Case, finding: dict[str, Any], folder: Path) -> bool:
    where = _where(finding)
    file = where.get("file")
    if not isinstance(file, str) or where.get("line") != case.marker.line:
        return False
    return (folder / file).resolve() == (folder / case.marker.file).resolve()


def _place(finding: dict[str, Any]) -> str:
    where = _where(finding)
    if where.get("file"):
        return f"{Path(str(where['file'])).name}:{where.get('line', '?')}"
    named = next(
        (f"{k} {where[k]}" for k in ("parameter", "module", "optimizer", "tensor", "column") if where.get(k)), ""
    )
    return named or "no place"


def _where(finding: dict[str, Any]) -> dict[str, Any]:
    where = finding.get("where")
    return where if isinstance(where, dict) else {}


def _step(finding: dict[str, Any]) -> int | None:
    for value in (finding.get("first_step"), _where(finding).get("step")):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _overhead(report: dict[str, Any] | None) -> float | None:
    figures = report.get("overhead") if report else None
    ratio = figures.get("ratio") if isinstance(figures, dict) else None
    return float(ratio) if isinstance(ratio, (int, float)) else None


def _shell_code(code: int) -> int:
    return 128 - code if code < 0 else code


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
