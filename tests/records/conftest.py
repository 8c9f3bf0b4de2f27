from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from record_examples import make_finding

from osler.core.finding import Finding


@pytest.fixture
def finding() -> Callable[..., Finding]:
    return make_finding


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """The folder of a run in a home, as `new_run` makes it, whose parent is gone."""
    path = tmp_path / ".osler" / "runs" / "20250131-120000-00aa"
    path.mkdir(parents=True)
    subject = {"kind": "run", "command": ["train.py"], "exit_code": 0, "started": 1.7e9, "seconds": 2.5}
    (path / "subject.json").write_text(json.dumps(subject))
    return path


@pytest.fixture
def child(run_dir: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a Python process in which `j` is the journal of the run and `f` makes findings."""
    started: list[subprocess.Popen[str]] = []
    head = f"""
        import os, signal, sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from record_examples import make_finding as f
        from osler.records.journal import Journal
        run_dir = {str(run_dir)!r}
        j = Journal(run_dir)
    """

    def start(body: str, **env: str) -> subprocess.Popen[str]:
        code = textwrap.dedent(head) + textwrap.dedent(body)
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
