"""Small casebooks whose scripts need no torch, and a stand-in for `osler run` that hands out prepared reports."""

from __future__ import annotations

from typing import Any

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import Report
from osler.core.rule import Rule

# Runs the script as `osler run` would, then writes the report that lies beside it: report--faulty.json and so on.
FAKE_OSLER = """
import os, pathlib, shutil, subprocess, sys

args = sys.argv[1:]
report = pathlib.Path("report.json")
if args[0] == "--json":
    report = pathlib.Path(args[1])
    del args[:2]
budget = "default"
if args[0] == "--budget":
    budget = args[1]
    del args[:2]
code = subprocess.call([sys.executable, *args], env={**os.environ, "WATCHED": "5"})
flag = "".join(args[1:])
for name in (f"report{flag}-{budget}.json", f"report{flag}.json"):
    if pathlib.Path(name).exists() and name != str(report):
        shutil.copy(name, report)
        break
sys.exit(code if code >= 0 else 128 - code)
"""

REPRO = """\
import json
import sys

faulty = "--faulty" in sys.argv
value = 5.0 if faulty else 0.5
with open("evidence.json", "w") as file:
    json.dump({"value": value}, file)
print("ran")  # fault-here
"""
MARKED_LINE = 8

TOML = """\
[case]
id = "{id}"
title = "A fault"
detects = ["log-of-zero"]
source = "this test"
cost_s = 1
needs = []
[inject]
flag = "--faulty"
exit_code = {exit_code}
[in_effect]
expr = "value > 1"
[expect]
finding = {{ rule = "log-of-zero", root = true, by_step = 3{place} }}
{also}
[twin]
flag = "--clean"
"""


def a_rule(name: str, causes: tuple[str, ...] = (), **fields: Any) -> Rule:
    """A rule whose every text says something."""
    texts = dict.fromkeys(("part", "summary", "why", "fix", "bad", "good", "limits"), "text")
    return Rule(name=name, severity=Severity.ERROR, causes=causes, **{**texts, **fields})


RULES = {
    r.name: r
    for r in (
        a_rule("divide-by-zero", causes=("log-of-zero",)),
        a_rule("log-of-zero"),
        a_rule("dead-relu"),
    )
}


def a_finding(
    rule: str = "log-of-zero",
    *,
    line: int = MARKED_LINE,
    step: int | None = 2,
    severity: Severity = Severity.ERROR,
    confidence: Confidence = Confidence.DEFINITE,
    **where: Any,
) -> Finding:
    """A finding at a line of repro.py."""
    place = Where(file="repro.py", line=line, **where)
    return Finding(rule, severity, confidence, "a sentence", place, first_step=step, last_step=step)


def report_of(*findings: Finding, steps: int = 10) -> dict[str, object]:
    """A report as `osler run --json` writes it."""
    report = Report({"kind": "run", "steps": steps}, findings=list(findings), overhead={"ratio": 1.02}, version="0")
    return report.to_dict(RULES)
