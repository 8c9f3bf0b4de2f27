"""Many small trainings in one process: torch is imported once. Each `case_…` of a script gives a dict of facts.

Run as `python script.py [case …]`; prints one JSON line a case, `{"case", "facts"}` or `{"case", "error"}`.
"""

from __future__ import annotations

import faulthandler
import json
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch


def seed(number: int = 0) -> None:
    """Set every generator."""
    torch.manual_seed(number)
    random.seed(number)


def main(names: dict[str, Any]) -> None:
    """Run the cases of a script, those named on the command line or all."""
    faulthandler.dump_traceback_later(170, exit=True)
    torch.set_num_threads(1)
    wanted = sys.argv[1:]
    out = sys.stdout
    sys.stdout = sys.stderr  # what the cases print is not the result
    for name, run in list(names.items()):
        if not name.startswith("case_") or (wanted and name not in wanted):
            continue
        seed()
        try:
            line: dict[str, Any] = {"case": name, "facts": run()}
        except Exception:
            line = {"case": name, "error": traceback.format_exc()}
        print(json.dumps(line), file=out, flush=True)


def findings_of(training: Callable[[], None], budget: str = "none", **options: Any) -> dict[str, Any]:
    """Watch a training; the findings as dicts, what was not checked, and the notes."""
    import osler

    with osler.watch(budget=budget, **options) as w:
        try:
            training()
            raised = None
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
    report = w.report
    return {
        "findings": [f.to_dict() for f in report.findings],
        "not_checked": [[n.what, n.why] for n in report.not_checked],
        "notes": report.notes,
        "raised": raised,
    }
