"""Running a script of the casebook in a temporary copy of its folder, with and without osler."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

EVIDENCE = "evidence.json"
OSLER_RUN = (sys.executable, "-m", "osler", "run")
OSLER = (sys.executable, "-m", "osler")
_TAIL = 16_384  # characters of output kept for the verdict
_GRACE_S = 5.0  # between asking a script to end and ending it

BudgetName = Literal["none", "default"]


class Stopped(Exception):
    """The whole verification is being stopped."""


@dataclass(slots=True)
class Ran:
    """One script that has been run.

    Attributes:
        command: what was run, as a user would type it.
        folder: the copy that was its working directory (it may be gone).
        exit_code: as a shell reports it (128 + n for a death by signal n).
        seconds: wall time.
        timed_out: it was ended because it took too long.
        stderr: the last part of it.
        report: osler's JSON report; None without osler, or when there is none.
        report_problem: why there is no report.
        evidence: what the script wrote to `evidence.json`; None when there is nothing usable.
        evidence_problem: why there is none.
    """

    command: str
    folder: Path
    exit_code: int
    seconds: float
    timed_out: bool = False
    stderr: str = ""
    report: dict[str, Any] | None = None
    report_problem: str = ""
    evidence: dict[str, Any] | None = None
    evidence_problem: str = ""


@dataclass(slots=True)
class Processes:
    """The processes that are running now, so that one call ends them all."""

    _live: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def run(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], timeout_s: float, output: Path
    ) -> tuple[int, float, bool, str]:
        """Run a command to its end: exit code, seconds, whether it was ended for taking too long, tail of stderr.

        Args:
            command: the command.
            folder: its working directory.
            env: its whole environment.
            timeout_s: seconds after which it is ended.
            output: an existing folder that its output is written to. Files, not pipes: a grandchild that outlives the
                script would hold a pipe open and the reader with it.

        Raises:
            Stopped: `stop` was called.
            OSError: it could not be started.
        """
        start = time.perf_counter()
        with (output / "stdout").open("wb") as out, (output / "stderr").open("wb") as err:
            with self._lock:
                if self._stopped:
                    raise Stopped
                # A session of its own: ^C reaches osler only, and what the script started can be ended with it.
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=dict(env),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
                self._live.add(process)
            timed_out = False
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                _end(process)
                with self._lock:
                    self._live.discard(process)
        if self._stopped:
            raise Stopped
        code = process.returncode
        seconds = time.perf_counter() - start
        return (128 - code if code < 0 else code), seconds, timed_out, _tail(output / "stderr")

    def stop(self) -> None:
        """End every process that is running and start no more."""
        with self._lock:
            self._stopped = True
            live = list(self._live)
        for process in live:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_S
        for process in live:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)


@contextlib.contextmanager
def copy_of(folder: Path) -> Iterator[tuple[Path, Path]]:
    """A temporary copy of a folder, and an empty folder beside it for output; both vanish afterwards."""
    with tempfile.TemporaryDirectory(prefix="osler-case-", ignore_cleanup_errors=True) as root:
        copy = Path(root).resolve() / folder.name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__", ".osler", EVIDENCE))
        output = Path(root).resolve() / "output"
        output.mkdir()
        yield copy, output


def environment(threads: int | None = None) -> dict[str, str]:
    """The environment for a script of the casebook: this one, without what would steer osler.

    Args:
        threads: threads that the numerical libraries may use, where the user has not said.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSLER_")}
    if "PYTHONPATH" in env:  # relative entries would point into the copy
        env["PYTHONPATH"] = os.pathsep.join(str(Path(p).absolute()) for p in env["PYTHONPATH"].split(os.pathsep) if p)
    if threads is not None:
        env.setdefault("OMP_NUM_THREADS", str(max(1, threads)))
    return env


def budget_options(budget: BudgetName) -> list[str]:
    """The options of `osler run` for that budget."""
    return ["--budget", "none"] if budget == "none" else []


def run_script(
    folder: Path,
    script: Sequence[str],
    *,
    budget: BudgetName | None,
    processes: Processes,
    timeout_s: float,
    osler_run: Sequence[str] = OSLER_RUN,
    threads: int | None = None,
    look: Sequence[str] = (),
) -> Ran:
    """Run a script in a temporary copy of its folder: under osler or, with `look`, before osler looks.

    Args:
        folder: the folder to copy.
        script: the script, relative to it, and its arguments.
        budget: osler's budget; None runs plain Python without osler.
        processes: keeps hold of what is running.
        timeout_s: seconds after which the script is ended.
        osler_run: the command that stands for `osler run`.
        threads: see `environment`.
        look: what follows `osler`; the script then runs in plain Python, and writes the data or only its evidence.

    Raises:
        Stopped: `processes.stop` was called.
        OSError: the copy or the process could not be made.
    """
    with copy_of(folder) as (copy, output):
        report = output / "report.json"
        if budget is None or look:
            command = [sys.executable, *script]
            shown = ["python", *script]
        else:
            command = [*osler_run, "--json", str(report), *budget_options(budget), *script]
            shown = ["osler", "run", *budget_options(budget), *script]
        code, seconds, timed_out, stderr = processes.run(command, copy, environment(threads), timeout_s, output)
        ran = Ran(" ".join(shown), copy, code, seconds, timed_out, stderr)
        ran.evidence, ran.evidence_problem = _read_json(copy / EVIDENCE, EVIDENCE)
        if budget is not None and look:
            _look(ran, look, report, threads, timeout_s, output, processes)
        elif budget is not None:
            ran.report, ran.report_problem = _read_json(report, "osler's JSON report")
        return ran


def _look(
    ran: Ran,
    look: Sequence[str],
    report: Path,
    threads: int | None,
    timeout_s: float,
    output: Path,
    processes: Processes,
) -> None:
    """Run osler over what the script has written, or over the script."""
    command = [*OSLER, *look, "--json", str(report)]
    code, seconds, timed_out, stderr = processes.run(command, ran.folder, environment(threads), timeout_s, output)
    ran.command += f"; osler {' '.join(look)}"
    ran.seconds += seconds
    ran.timed_out = ran.timed_out or timed_out
    ran.stderr += stderr
    if code in (0, 1):
        ran.report, ran.report_problem = _read_json(report, "osler's JSON report")
    else:
        lines = stderr.strip().splitlines()
        ran.report_problem = f"`osler {look[0]}` ended with {code}: {lines[-1] if lines else 'it said nothing'}"


def _read_json(path: Path, name: str) -> tuple[dict[str, Any] | None, str]:
    """An object of strict JSON, or why there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except FileNotFoundError:
        return None, f"{name} was not written"
    except (OSError, ValueError, RecursionError) as err:
        return None, f"{name} is not strict JSON: {err}"
    if not isinstance(data, dict):
        return None, f"{name} is no JSON object"
    return data, ""


def _refuse(word: str) -> object:
    raise ValueError(f'{word} must be the string "{word}"')


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        return file.read().decode("utf-8", errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, politely first, and whatever it has left behind in its group."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            pass
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
