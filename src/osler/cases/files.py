"""The verdicts as files: JSON and JUnit."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import osler
from osler.app.errors import UserError
from osler.cases.runner import Outcomes
from osler.cases.tables import totals
from osler.cases.verdict import Outcome, Verdict
from osler.core.jsonable import dumps

SCHEMA = 1
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML 1.0


def to_json(outcomes: Outcomes) -> str:
    """`{"osler", "schema", "interrupted", "wanted", "totals", "verdicts": [...]}`, strict, indented."""
    data: dict[str, Any] = {
        "osler": osler.__version__,
        "schema": SCHEMA,
        "interrupted": outcomes.interrupted,
        "wanted": outcomes.wanted,
        "totals": totals(outcomes.verdicts),
        "verdicts": [v.to_dict() for v in outcomes.verdicts],
    }
    return dumps(data, indent=2) + "\n"


def to_junit(verdicts: Sequence[Verdict]) -> str:
    """JUnit XML: one suite a kind and budget, one test case a verdict."""
    root = ET.Element("testsuites", name="osler cases")
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in verdicts:
        groups.setdefault((v.kind, v.budget), []).append(v)
    for (kind, budget), group in groups.items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=f"{kind}, budget {budget}",
            tests=str(len(group)),
            failures=str(sum(v.outcome.failed and v.outcome is not Outcome.CRASHED for v in group)),
            errors=str(sum(v.outcome is Outcome.CRASHED for v in group)),
            skipped=str(sum(v.outcome is Outcome.SKIPPED for v in group)),
            time=f"{sum(v.seconds for v in group):.3f}",
        )
        for v in group:
            test = ET.SubElement(
                suite, "testcase", name=v.id, classname=f"osler.cases.{kind}.{budget}", time=f"{v.seconds:.3f}"
            )
            if v.outcome is Outcome.SKIPPED:
                ET.SubElement(test, "skipped", message=_clean(v.reason))
            elif v.outcome.failed:
                tag = "error" if v.outcome is Outcome.CRASHED else "failure"
                mark = ET.SubElement(test, tag, type=v.outcome.value, message=_clean(v.reason))
                mark.text = _clean("\n".join(v.reasons))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def check_writable(path: str) -> None:
    """Find out before an hour's work that its result cannot be written.

    Raises:
        UserError: the folder does not exist, or the path is a folder.
    """
    if path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise UserError(f"{path} is a folder; name a file")
    if not target.absolute().parent.is_dir():
        raise UserError(f"{path} cannot be written: {target.parent} is no folder")


def write(path: str, text: str) -> None:
    """Write to a file, or to stdout for `-`.

    Raises:
        UserError: it cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as err:
        raise UserError(f"{path} cannot be written: {err.strerror}") from None


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("?", text)
