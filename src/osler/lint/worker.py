"""A process that looks at files for another: a line of JSON in for each group of files, a line out for each file.

A line in may also be one source that lies in no file yet: an object of its path and its bytes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO

from osler.core.settings.lint import Lint
from osler.lint.linter import Linter, collecting_rarely
from osler.lint.plan import Plan
from osler.lint.result import FileResult


def serve(source: IO[str], sink: IO[str]) -> None:
    """Read a plan, then groups of files until the input ends."""
    told = json.loads(source.readline())
    torch = told["torch"]
    plan = Plan(None if torch is None else (torch[0], torch[1]), Lint(**told["settings"]))
    linter = Linter(plan)
    for line in source:
        asked = json.loads(line)
        results = (_given(plan, **asked),) if isinstance(asked, dict) else map(linter.lint, asked)
        for result in results:
            sink.write(json.dumps(result.to_dict()) + "\n")
            sink.flush()


def _given(plan: Plan, path: str, data: str) -> FileResult:
    """Look at bytes, given as Latin-1, in the place of a file's; the others are read anew, as they may have changed."""
    linter = Linter(plan)
    linter.give(path, data.encode("latin-1"))
    return linter.lint(path)


def main() -> None:
    """Serve on stdin and stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent has been interrupted as well and ends us
    sink = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # whatever else prints must not come between the lines
    with open(0, encoding="ascii", closefd=False) as source:
        try:
            with collecting_rarely():
                serve(source, sink)
        except BrokenPipeError:
            sys.exit(1)
