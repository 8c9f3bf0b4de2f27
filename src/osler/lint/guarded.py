"""Sources looked at in a process of their own: what a source does there, it cannot do to the one who asks."""

from __future__ import annotations

import json
import subprocess
import threading

from osler.lint.plan import Plan
from osler.lint.pool import died, start
from osler.lint.result import FileResult, Trouble

# The process counts its own work and gives a file up in time; this much later it is taken for stuck, or has no such clock.
GRACE_S = 10.0
_CLOSED = Trouble("was not looked at any more")


class Guarded:
    """Looks at one source after the other, in a process that is kept from one to the next.

    May be used from any thread, by one at a time.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def lint(self, path: str, data: bytes) -> FileResult:
        """Look at these bytes as the file's. Never takes much longer than twice the plan's time.

        Raises:
            OSError: no process can be started.
        """
        if self._closed:
            return FileResult(path, troubles=[_CLOSED])
        if self._process is None or self._process.poll() is not None:
            self._process = start(self.plan)
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        # By the wall, where work is counted by the processor: a busy machine is to have its chance.
        most = 2 * self.plan.settings.seconds + GRACE_S
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(most, end)
        clock.daemon = True
        clock.start()
        try:
            process.stdin.write(json.dumps({"path": path, "data": data.decode("latin-1")}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith("\n"):
                return FileResult.from_dict(json.loads(line))
        except (OSError, ValueError):
            process.kill()
        finally:
            clock.cancel()
        self._process = None
        code = process.wait()
        if self._closed:
            return FileResult(path, troubles=[_CLOSED])
        if late.is_set():
            return FileResult(path, troubles=[Trouble(f"took longer than {most:g} s and was given up")])
        return died(path, code)

    def close(self) -> None:
        """End the process, and whatever it is at."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
