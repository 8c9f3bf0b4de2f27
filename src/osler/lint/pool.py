"""Files looked at by several processes. One that dies takes a single file with it."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from osler.lint.plan import Plan
from osler.lint.result import FileResult, Trouble

_GROUP_FILES = 32
_GROUP_BYTES = 400_000
_TRIES = 3  # processes in a row that may die before their first answer

Done = Callable[[FileResult], None]


def groups(files: Sequence[str]) -> list[list[str]]:
    """Files that lie together, in pieces small enough that the last one keeps nobody waiting."""
    out: list[list[str]] = []
    size = 0
    for file in files:
        try:
            own = os.stat(file).st_size
        except OSError:
            own = 0
        if not out or len(out[-1]) >= _GROUP_FILES or size + own > _GROUP_BYTES:
            out.append([])
            size = 0
        out[-1].append(file)
        size += own
    return out


class Pool:
    """Starts the processes, hands groups out, ends them whatever happens."""

    def __init__(self, plan: Plan, jobs: int) -> None:
        self.plan = plan
        self.jobs = jobs
        self._processes: list[subprocess.Popen[str]] = []
        self._stopped = False

    def lint(self, files: Sequence[str], done: Done) -> None:
        """Look at the files; `done` is called with each result, from this thread.

        Raises:
            OSError: no process can be started.
        """
        waiting: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        pieces = groups(files)
        for piece in pieces:
            waiting.put(piece)
        results: queue.SimpleQueue[FileResult | BaseException | None] = queue.SimpleQueue()
        threads = [
            threading.Thread(target=self._serve, args=(waiting, results), daemon=True)
            for _ in range(min(self.jobs, len(pieces)))
        ]
        for thread in threads:
            thread.start()
        try:
            left = len(threads)
            while left:
                one = results.get()
                if one is None:
                    left -= 1
                elif isinstance(one, BaseException):
                    raise one
                else:
                    done(one)
        finally:
            self._stopped = True
            for process in list(self._processes):
                process.kill()
            for thread in threads:
                thread.join(5)

    def _serve(
        self,
        waiting: queue.SimpleQueue[list[str]],
        results: queue.SimpleQueue[FileResult | BaseException | None],
    ) -> None:
        process: subprocess.Popen[str] | None = None
        silent = 0
        try:
            while not self._stopped:
                try:
                    files = waiting.get_nowait()
                except queue.Empty:
                    break
                while files and not self._stopped:
                    if process is None:
                        process = start(self.plan)
                        self._processes.append(process)
                    answers = self._ask(process, files, results)
                    silent = 0 if answers else silent + 1
                    files = files[answers:]
                    if files and not self._stopped:
                        code = process.wait()
                        process = None
                        results.put(died(files.pop(0), code))
                        if silent >= _TRIES:
                            raise OSError(f"its processes end at once (exit code {code})")
        except BaseException as error:
            results.put(error)
        finally:
            if process is not None:
                process.kill()
                process.wait()
            results.put(None)

    def _ask(
        self,
        process: subprocess.Popen[str],
        files: list[str],
        results: queue.SimpleQueue[FileResult | BaseException | None],
    ) -> int:
        """How many of the files were answered before the process ended."""
        assert process.stdin is not None and process.stdout is not None
        answered = 0
        try:
            process.stdin.write(json.dumps(files) + "\n")
            process.stdin.flush()
            while answered < len(files):
                line = process.stdout.readline()
                if not line.endswith("\n"):
                    break
                results.put(FileResult.from_dict(json.loads(line)))
                answered += 1
        except (OSError, ValueError):
            process.kill()
        return answered


def start(plan: Plan) -> subprocess.Popen[str]:
    """A process of `osler.lint.worker` that knows the plan.

    Raises:
        OSError: no process can be started.
    """
    # Not `-m`: that would look for modules in the working directory, where the user's own `ast.py` may lie.
    code = f"import sys; sys.path[:] = {sys.path!r}; from osler.lint.worker import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("OSLER_DEBUG") else subprocess.DEVNULL,
        encoding="ascii",
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps({"torch": plan.torch, "settings": dataclasses.asdict(plan.settings)}) + "\n")
    except OSError:
        pass  # it has ended already; asking it will tell
    return process


def died(file: str, code: int) -> FileResult:
    """What is known of a file at which a process has ended."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    told = f"osler failed on {file}: the process that looked at it ended ({how}); please report it"
    return FileResult(file, troubles=[Trouble(told, ours=True)])
