"""The report as strict JSON."""

from __future__ import annotations

from collections.abc import Mapping

from osler.core.jsonable import dumps
from osler.core.report import Report
from osler.core.rule import Rule


def to_json(report: Report, rules: Mapping[str, Rule]) -> str:
    """The JSON contract (`osler schema`) as text, indented by two, ending with a newline.

    Non-finite numbers are the strings "NaN", "Infinity", "-Infinity"; all characters are ASCII.
    """
    return dumps(report.to_dict(rules), indent=2) + "\n"
