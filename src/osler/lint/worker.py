"""A process that looks at files for another: a line of JSON in for each group of files, a line out for each file."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import IO

from osler.lint.linter import Linter, Plan, collecting_rarely


def serve(source: IO[str], sink: IO[str]) -> None:
    """Read a plan, then groups of files until the input ends."""
    plan = json.loads(source.readline())
    torch = plan["torch"]
    linter = Linter(Plan(None if torch is None else (torch[0], torch[1]), plan["most_bytes"], plan["seconds"]))
    for line in source:
        for path in json.loads(line):
            result = linter.lint(path)
            sink.write(json.dumps(result.to_dict()) + "\n")
            sink.flush()


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
