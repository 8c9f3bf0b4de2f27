"""Fixtures: batches of small trainings, each batch run once a session in a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "scripts"


class Batch:
    """The outcome of a script's cases."""

    def __init__(self, script: Path, outcome: dict[str, Any]) -> None:
        self.script = script
        self._outcome = outcome

    def facts(self, case: str) -> dict[str, Any]:
        """What a case gave; its own traceback fails the test."""
        lines = self._outcome["lines"]
        if case not in lines:
            pytest.fail(f"{self.script.name} ended before {case}: {self._outcome['stderr'][-3000:]}")
        if "error" in lines[case]:
            pytest.fail(f"{case} raised: {lines[case]['error']}")
        return lines[case]["facts"]

    def line(self, mark: str) -> int:
        """The 1-based line that carries `# here: <mark>`."""
        text = self.script.read_text(encoding="utf-8").splitlines()
        found = [i for i, line in enumerate(text, 1) if line.endswith(f"# here: {mark}")]
        assert len(found) == 1, f"{mark}: {found}"
        return found[0]


@pytest.fixture(scope="session")
def batch(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str], Batch]:
    """A function that runs a script of `scripts/` (once, whichever worker asks first) and gives its outcome."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent

    def run(name: str) -> Batch:
        script = SCRIPTS / f"{name}.py"
        kept = shared / f"batch-{name}.json"
        with (shared / f"batch-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                kept.write_text(json.dumps(_run(script, shared)))
        return Batch(script, json.loads(kept.read_text()))

    return run


def _run(script: Path, cwd: Path) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSLER_")}
    done = subprocess.run([sys.executable, str(script)], cwd=cwd, env=env, capture_output=True, text=True, timeout=200)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {"lines": {line["case"]: line for line in lines}, "stderr": done.stderr, "code": done.returncode}
