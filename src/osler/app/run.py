"""`osler run`: starts the script under watch, shows findings while it runs, reports at its end, ends as it ended.

Whatever goes wrong on osler's side once the script runs is one line on stderr and changes nothing about the script.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from osler.app.config import Loaded
from osler.app.errors import UserError
from osler.app.target import Target, resolve
from osler.app.wake import AWAKE
from osler.core.finding import Confidence, Finding, Severity
from osler.core.jsonable import dumps
from osler.core.report import Report
from osler.core.runfolder import DISABLE, PLAN, RUN_DIR
from osler.core.settings import Settings
from osler.training.launch import LaunchError, Outcome, launch, reraise

if TYPE_CHECKING:
    from rich.console import Console

POLL_S = 0.2  # between two looks at the journals; a finding is on the screen within about this time
_TRAINING = "training"  # what was not checked when nothing was watched
_ENVIRONMENT_S = 5.0  # how long the report waits for git and the list of packages


@dataclass(frozen=True, slots=True)
class Outputs:
    """Files to write the report to; `-` is stdout, None writes nothing."""

    json: str | None = None
    html: str | None = None
    sarif: str | None = None
    junit: str | None = None

    def check(self) -> None:
        """Before hours of training, see whether the files can be written.

        Raises:
            UserError: a folder is missing or not writable, or a file is a folder.
        """
        for option, file in dataclasses.asdict(self).items():
            if not file or file == "-":
                continue
            path = Path(file)
            if not path.parent.is_dir():
                raise UserError(f"--{option} {file}: there is no folder {path.parent}")
            if path.is_dir():
                raise UserError(f"--{option} {file} is a folder; name a file in it")
            if not os.access(path if path.exists() else path.parent, os.W_OK):
                raise UserError(f"--{option} {file} cannot be written: no permission")

    def write(self, report: Report, fail_on: Severity | None = None) -> list[str]:
        """Write the files.

        Args:
            report: what is written.
            fail_on: severity from which a finding counts as a failure in JUnit.

        Returns:
            One line for each file that could not be written.
        """
        troubles = []
        for option, file in dataclasses.asdict(self).items():
            if not file:
                continue
            try:
                text = _rendered(option, report, fail_on)
                if file == "-":
                    sys.stdout.write(text)
                    sys.stdout.flush()
                else:
                    Path(file).write_text(text, encoding="utf-8")
            except OSError as error:
                troubles.append(f"--{option} {file} cannot be written: {error.strerror or error}")
            except Exception as error:
                troubles.append(f"--{option} {file} cannot be written: {type(error).__name__}: {error}")
        return troubles


def _rendered(option: str, report: Report, fail_on: Severity | None) -> str:
    from osler.catalogue import RULES

    if option == "json":
        from osler.render.json_ import to_json

        return to_json(report, RULES)
    if option == "html":
        from osler.render.page import page

        return page(report, RULES)
    if option == "sarif":
        from osler.render.sarif import to_sarif

        return to_sarif(report, RULES)
    from osler.render.junit import to_junit

    return to_junit(report, RULES, fail_on or Severity.WARNING)


def run(
    target: Sequence[str],
    *,
    loaded: Loaded,
    module: str | None = None,
    python: str | None = None,
    outputs: Outputs | None = None,
    dump: bool = True,
    trace_layers: bool = False,
    expect: Path | None = None,
    record_graph: Path | None = None,
    all: bool = False,
    quiet: bool = False,
    verbose: bool = False,
) -> int:
    """Run a script under watch.

    Does not return when a signal ended the script: this process then ends of the same signal.

    Args:
        target: script and arguments, Python options and these, or a command and its arguments.
        loaded: the settings in force.
        module: the name after `-m`; `target` then holds its arguments.
        python: the interpreter that `--python` names.
        outputs: files to write the report to.
        dump: whether a bundle of a failing step may be written.
        trace_layers: print every layer of the first step.
        expect: a graph to compare the module calls with.
        record_graph: where the graph of module calls is written.
        all: also show findings that are only possible.
        quiet: no lines while the script runs.
        verbose: every symptom, and why each rule was not checked.

    Returns:
        The exit code: the script's own, or 1 when it succeeded and there are findings at `fail_on`.

    Raises:
        UserError: there is nothing to run, or something named on the command line cannot be used.
    """
    words = ["-m", module, *target] if module is not None else list(target)
    outputs = outputs or Outputs()
    if expect is not None and not expect.is_file():
        raise UserError(f"--expect {expect}: there is no such file; `--record-graph {expect}` writes one")
    if record_graph is not None and not record_graph.absolute().parent.is_dir():
        raise UserError(f"--record-graph {record_graph}: there is no folder {record_graph.parent}")
    try:
        goal = resolve(words, python)
        if os.environ.get(DISABLE):
            _become(goal)
        outputs.check()
        options: dict[str, object] = {
            "budget_none": loaded.budget_none,
            "trace_layers": trace_layers,
            "expect": None if expect is None else str(expect.absolute()),
            "record_graph": None if record_graph is None else str(record_graph.absolute()),
            "dump": dump and loaded.settings.dump.enabled,
        }
        run_dir = _prepare(words, goal, loaded.settings, options)
        if run_dir is None:
            return _exit(launch(goal.unwatched, _environ(None), lambda: None), None, loaded.settings)
        live = _Live(run_dir, loaded.settings, show=not quiet, all=all)
        try:
            outcome = launch(goal.argv, _environ(run_dir), live.poll, POLL_S)
        except LaunchError:
            shutil.rmtree(run_dir, ignore_errors=True)
            raise
    except LaunchError as error:
        raise UserError(str(error)) from None
    report: Report | None = None
    with _report_phase():
        missing = _why_nothing(run_dir, goal, outcome)
        _note_end(run_dir, goal, outcome, live, loaded.settings, missing)
        if missing is not None:
            _say(missing)
        if missing is None:
            _join(run_dir, goal, loaded.settings)
        if missing is None or outputs != Outputs():
            report = _report(run_dir, loaded.settings)
            if missing is None:
                _show(report, live, trace_layers, all, verbose)
            fail_on = Severity.parse(loaded.settings.fail_on) if loaded.settings.fail_on else None
            for trouble in outputs.write(report, fail_on):
                _say(trouble)
        _prune(run_dir, loaded.settings)
    return _exit(outcome, report, loaded.settings)


# --- before -----------------------------------------------------------------------------------------------------------


def _become(goal: Target) -> None:
    """Switched off: this process becomes the script's."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so across exec
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    argv = goal.unwatched
    try:
        os.execvpe(argv[0], argv, _environ(None))
    except OSError as error:
        raise UserError(f"{argv[0]} cannot be started: {error.strerror or error}") from None


def _environ(run_dir: Path | None) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name != RUN_DIR}
    return environ if run_dir is None else {**environ, RUN_DIR: str(run_dir)}


def _prepare(words: Sequence[str], goal: Target, settings: Settings, options: dict[str, object]) -> Path | None:
    """The run's folder with plan and subject in it; None where nothing can be written at all."""
    from osler.records.folder import new_run, replace_file, write_subject
    from osler.records.redact import Redactor

    try:
        cwd = Path.cwd()
        run_dir, line = new_run(cwd)
        if line is not None:
            _say(line.removeprefix("osler: "))
        plan = {"settings": dataclasses.asdict(settings), "options": {**options, "cwd": str(cwd)}}
        replace_file(run_dir / PLAN, dumps(plan).encode())
        redact = Redactor().command
        write_subject(run_dir, {"command": redact(words), "argv": redact(goal.argv)})
    except OSError as error:
        _say(f"no folder for this run can be written ({error.strerror or error}): {goal.name} runs unwatched")
        return None
    return run_dir


# --- while it runs ----------------------------------------------------------------------------------------------------


class _Live:
    """What is shown while the script runs, and what is learned on the side.

    Attributes:
        environment: packages, hardware and git as this process sees them.
        said: the watcher's own lines that were shown.
    """

    def __init__(self, run_dir: Path, settings: Settings, show: bool, all: bool) -> None:
        self._run_dir = run_dir
        self._settings = settings
        self._show = show
        self._all = all
        self._follower: object = None
        self._console: Console | None = None
        self._broken = False
        self._facts = Thread(target=self._look_around, daemon=True)
        self.environment: dict[str, object] = {}
        self.said: set[str] = set()

    @property
    def console(self) -> Console:
        """Where lines and reports go: stderr, never stdout."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=sys.stderr, highlight=False)
        return self._console

    def poll(self) -> None:
        """Show what is new."""
        if self._facts.ident is None:
            # Not before the start: the script must not wait for git. A thread, because signals must not either.
            self._facts.start()
        if self._broken or not self._show:
            return
        try:
            self._poll()
        except Exception as error:
            self._broken = True
            _say(f"findings cannot be shown while the script runs ({type(error).__name__}: {error})")

    def _poll(self) -> None:
        from osler.records.follow import Follower

        if not isinstance(self._follower, Follower):
            self._follower = Follower(self._run_dir)
        found = self._follower.poll()
        notes = self._follower.notes()
        if not found and not notes:
            return
        from osler.render.terminal import live_line

        for label, finding in found:
            if self._wanted(finding):
                live_line(_with_rank(finding, label), self.console)
        for note in notes:
            self.said.add(note)
            _say(note.removeprefix("osler "))

    def _wanted(self, finding: Finding) -> bool:
        from osler.app.ignores import apply

        if finding.confidence <= Confidence.POSSIBLE and not self._all:
            return False
        return bool(apply(Report({}, findings=[finding]), self._settings).findings)

    def _look_around(self) -> None:
        from osler.app.environment import fingerprint

        with contextlib.suppress(Exception):
            self.environment = fingerprint(full=False)

    def facts(self, same_python: bool) -> dict[str, object]:
        """The environment, without what does not hold for the script's interpreter."""
        if self._facts.ident is None:
            self._facts.start()
        self._facts.join(_ENVIRONMENT_S)
        facts = dict(self.environment)
        if not same_python:
            for name in ("python", "packages"):
                facts.pop(name, None)
        return facts


def _with_rank(finding: Finding, label: str) -> Finding:
    rank = label.removeprefix("rank ")
    if rank == label or not rank.isdigit() or finding.where.rank is not None:
        return finding
    return dataclasses.replace(finding, where=dataclasses.replace(finding.where, rank=int(rank)))


# --- after ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _report_phase() -> Iterator[None]:
    """The script has ended: a second ^C, or a fault of ours, ends the report but not the exit code."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(Exception):
            _say("interrupted while reporting; `osler report` shows the run")
    except Exception as error:
        if os.environ.get("OSLER_DEBUG"):
            import traceback

            traceback.print_exc()
        with contextlib.suppress(Exception):
            _say(f"the report failed ({type(error).__name__}: {error}); `osler report` tries again")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _note_end(
    run_dir: Path, goal: Target, outcome: Outcome, live: _Live, settings: Settings, missing: str | None
) -> None:
    """Keep how the script ended, and why nothing was watched, so that the run says so whenever it is looked at."""
    from osler.records.folder import write_subject
    from osler.records.journal import Journal

    with contextlib.suppress(OSError):
        (run_dir / AWAKE).unlink()
    ended: dict[str, object] = {"seconds": round(outcome.seconds, 3)}
    if outcome.signal is None:
        ended["exit_code"] = outcome.exit_code
    else:
        ended |= {"exit_code": 128 + outcome.signal, "signal": signal.Signals(outcome.signal).name}
    if missing is None:
        ended["environment"] = live.facts(same_python=goal.python and goal.argv[0] == sys.executable)
    try:
        write_subject(run_dir, ended)
    except OSError as error:
        _say(f"how the script ended could not be kept ({error.strerror or error})")
    if missing is not None:
        journal = Journal(str(run_dir), settings.records.flush_s)
        journal.not_checked(_TRAINING, missing)
        journal.close(0)


def _join(run_dir: Path, goal: Target, settings: Settings) -> None:
    """Add to the run what its source says about what was found; only where something was."""
    from osler.records.journal import Journal
    from osler.records.read import read_run

    try:
        found = [finding for process in read_run(run_dir) for finding in process.findings.values()]
        if not found:
            return
        from osler.app.join import files, join, seen_in_source

        script = goal.name if goal.python else None
        added, notes = join(found, seen_in_source(files(script, found, Path.cwd()), settings=settings.lint))
        if not added and not notes:
            return
        journal = Journal(str(run_dir), settings.records.flush_s)
        for finding in added:
            journal.finding(finding)
        for note in notes:
            journal.note(f"osler: {note}")
        journal.close(0)
    except Exception as error:
        _say(f"the source was not looked at ({type(error).__name__}: {error})")


def _report(run_dir: Path, settings: Settings) -> Report:
    """Take the run into the database; the report, without what the user does not want to hear."""
    from osler.app.ignores import apply
    from osler.records.assemble import assemble
    from osler.records.ingest import ingest

    try:
        for line in ingest(run_dir):
            _say(line.removeprefix("osler: "))
    except Exception as error:
        _say(f"the run could not be taken into the database ({type(error).__name__}: {error}); its journals are kept")
    return apply(assemble(run_dir), settings)


def _why_nothing(run_dir: Path, goal: Target, outcome: Outcome) -> str | None:
    """Why no process was watched; None where one was."""
    from osler.records.read import journals

    if list(journals(run_dir)):
        return None
    if (run_dir / AWAKE).exists():
        if outcome.exit_code == 0:
            return f"{goal.name} imported no torch: nothing was watched"
        return f"{goal.name} ended before it imported torch: nothing was watched"
    if goal.awake is False:
        return (
            f"osler could not wake up in {Path(goal.argv[0]).name} (started with -S, or too old): nothing was watched"
        )
    if goal.python:
        return f"osler did not wake up in {goal.argv[0]}: nothing was watched; `osler doctor` says why"
    return (
        f"osler woke up in no process of {goal.name}: nothing was watched; its Python may have been started with -S or "
        "have no osler installed"
    )


def _show(report: Report, live: _Live, trace_layers: bool, all: bool, verbose: bool) -> None:
    from osler.catalogue import RULES
    from osler.render.terminal import print_report

    aside = next((n.why for n in report.not_checked if n.what == _TRAINING), None)
    if aside is not None and not report.findings and not report.subject.get("steps"):
        if aside not in live.said:
            _say(aside)
        return
    try:
        if trace_layers:
            from osler.render.layers import print_layers

            print_layers(report, live.console)
        print_report(report, RULES, live.console, all=all, verbose=verbose)
    except Exception as error:
        _say(f"the report cannot be shown ({type(error).__name__}: {error}); `osler report` tries again")


def _prune(run_dir: Path, settings: Settings) -> None:
    from osler.records.folder import Home, prune

    records = settings.records
    try:
        prune(Home(run_dir.parent.parent), records.keep_runs, records.keep_days, records.max_mb)
    except Exception as error:
        _say(f"old runs could not be removed ({type(error).__name__}: {error})")


def _exit(outcome: Outcome, report: Report | None, settings: Settings) -> int:
    if outcome.exit_code is None:
        reraise(outcome)
    if outcome.exit_code == 0 and report is not None and settings.fail_on:
        return 1 if report.at_least(Severity.parse(settings.fail_on)) else 0
    return outcome.exit_code


def _say(line: str) -> None:
    """One line on stderr. A stderr that is closed is no reason to fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"osler: {' '.join(line.split())}\n")
        sys.stderr.flush()
