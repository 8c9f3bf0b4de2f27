"""The report as SARIF 2.1.0, for code scanning and editors.

One result per cause; what follows from it is in its `relatedLocations` and its `codeFlows`, so that a viewer shows one
alarm. The result's level is the highest of the cause and its symptoms: a gate on errors must not be passed because the
cause itself is only a warning.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import quote

from osler.core.diagnosis import Place
from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.jsonable import dumps
from osler.core.report import NotChecked, Report
from osler.core.rule import Rule
from osler.render import words
from osler.render.outline import below
from osler.render.source import Reader
from osler.render.source import reader as reading

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "oslerFinding/v1"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PRECISION = {Confidence.DEFINITE: "very-high", Confidence.PROBABLE: "high", Confidence.POSSIBLE: "low"}
_RANKS = {Confidence.DEFINITE: 100.0, Confidence.PROBABLE: 75.0, Confidence.POSSIBLE: 25.0}

Json = dict[str, object]


def to_sarif(report: Report, rules: Mapping[str, Rule], root: str | None = None, source: Reader | None = None) -> str:
    """The report as a SARIF log, indented by two, ending with a newline.

    Args:
        report: what was found.
        rules: the catalogue; a finding whose rule is not in it gets a bare descriptor.
        root: absolute directory that `%SRCROOT%` stands for; the subject's `cwd` when None.
        source: reads source lines for the fingerprints, which then survive lines being added above.
    """
    if root is None and isinstance(report.subject.get("cwd"), str):
        root = str(report.subject["cwd"])
    unknown = dict.fromkeys(f.rule for f in report.findings if f.rule not in rules)
    descriptors = [_descriptor(rule) for rule in rules.values()] + [{"id": words.one_line(n)} for n in unknown]
    index = {name: i for i, name in enumerate([*rules, *unknown])}
    writer = _Writer(root, index, source or reading(root))
    run: Json = {
        "tool": {
            "driver": {
                "name": "osler",
                "version": report.version or "unknown",
                "rules": descriptors,
            }
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(n, index) for n in report.not_checked],
            }
        ],
        "results": [writer.result(place) for place in report.diagnosis(rules).roots],
        "properties": {"subject": _cleaned(report.subject), "overhead": _cleaned(report.overhead)},
    }
    if root:
        run["originalUriBaseIds"] = {"%SRCROOT%": {"uri": _file_uri(root).rstrip("/") + "/"}}
    return dumps({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


class _Writer:
    """Turns places of the diagnosis into SARIF results."""

    def __init__(self, root: str | None, index: Mapping[str, int], source: Reader) -> None:
        self.root = root
        self.index = index
        self.source = source

    def result(self, place: Place) -> Json:
        finding = place.finding
        symptoms = [p for _, p in below(place)]
        worst = max([finding.severity, *(p.finding.severity for p in symptoms)])
        text = _cell(finding.where) + words.clean(finding.message)
        result: Json = {
            "ruleId": words.one_line(finding.rule),
            "ruleIndex": self.index[finding.rule],
            "level": _LEVELS[worst],
            "rank": _RANKS[finding.confidence],
            "message": {"text": f"{text}\n{words.clean(finding.fix)}" if finding.fix else text},
            "locations": [self.location(finding)] if _placed(finding.where) else [],
            "partialFingerprints": {FINGERPRINT: self.fingerprint(finding)},
            "occurrenceCount": finding.count,
            "properties": {
                "id": place.id,
                "severity": finding.severity.label,
                "confidence": finding.confidence.label,
                "confirmed": finding.confirmed,
                "first_step": finding.first_step,
                "last_step": finding.last_step,
                "where": _cleaned(finding.where.to_dict()),
                "evidence": dict(words.evidence(finding.evidence)),
                "fix": words.clean(finding.fix),
            },
        }
        if symptoms:
            result["relatedLocations"] = [
                {"id": i, **self.location(p.finding), "message": {"text": _line(p.finding)}}
                for i, p in enumerate(symptoms, 1)
            ]
            result["codeFlows"] = [
                {
                    "message": {"text": "how the fault spreads"},
                    "threadFlows": [{"locations": [self.flow(p, i) for i, p in enumerate([place, *symptoms], 1)]}],
                }
            ]
        return result

    def flow(self, place: Place, order: int) -> Json:
        step: Json = {
            "location": {**self.location(place.finding), "message": {"text": _line(place.finding)}},
            "executionOrder": order,
            "importance": "essential" if place.cause is None else "important",
        }
        if place.finding.first_step is not None:
            step["properties"] = {"step": place.finding.first_step}
        return step

    def location(self, finding: Finding) -> Json:
        where = finding.where
        location: Json = {}
        if where.file is not None:
            physical: Json = {"artifactLocation": self.artifact(where.file)}
            line = where.line if where.cell is None else self.file_line(where)
            if line is not None and line >= 1:
                physical["region"] = {"startLine": line}
            location["physicalLocation"] = physical
        logical: list[Json] = []
        if where.cell is not None:
            file = words.path(where.file or "", self.root)
            logical.append(
                {"name": f"cell {where.cell}", "fullyQualifiedName": f"{file}:cell {where.cell}", "kind": "cell"}
            )
        logical += [
            {"fullyQualifiedName": words.one_line(name), "kind": kind}
            for name, kind in (
                (where.function, "function"),
                (where.module, "module"),
                (where.parameter, "member"),
                (where.optimizer, "object"),
                (where.tensor, "variable"),
                (where.column, "column"),
            )
            if name is not None
        ]
        if logical:
            location["logicalLocations"] = logical
        return location

    def file_line(self, where: Where) -> int | None:
        """The line of a notebook's file: a region counts in what the artifact holds, not in a cell."""
        if where.file is None or where.line is None:
            return None
        found = self.source(where.file, where.line, where.cell)
        return None if found is None else found.file_line

    def artifact(self, file: str) -> Json:
        inside = _relative(file, self.root)
        if inside is not None:
            return {"uri": _quoted(inside), "uriBaseId": "%SRCROOT%"}
        return {"uri": _file_uri(file)}

    def fingerprint(self, finding: Finding) -> str:
        """The same for the same fault in the same line of code, wherever that line has moved to."""
        where = finding.where
        line: object = where.line
        if where.file is not None and where.line is not None:
            found = self.source(where.file, where.line, where.cell)
            if found is not None:
                line = " ".join(found.marked.split())
        file = where.file and (_relative(where.file, self.root) or where.file)
        parts = (finding.rule, file, where.function, where.module, where.parameter, where.optimizer, where.tensor)
        text = "\0".join("" if p is None else str(p) for p in (*parts, where.column, where.rank, where.direction, line))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _descriptor(rule: Rule) -> Json:
    descriptor: Json = {
        "id": rule.name,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why}\n\n{rule.fix}", "markdown": _markdown(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "tags": [rule.part, *rule.routes],
            "precision": _PRECISION[Confidence.DEFINITE],
            "causes": list(rule.causes),
        },
    }
    if rule.links:
        descriptor["helpUri"] = rule.links[0]
    return descriptor


def _markdown(rule: Rule) -> str:
    parts = [f"# {rule.name}", rule.summary, "## Why it hurts", rule.why]
    if rule.bad:
        parts += ["## Faulty", f"```python\n{rule.bad.strip()}\n```"]
    if rule.good:
        parts += ["## Mended", f"```python\n{rule.good.strip()}\n```"]
    parts += ["## Fix", rule.fix]
    if rule.causes:
        parts += ["## Brings about", ", ".join(f"`{name}`" for name in rule.causes)]
    if rule.limits:
        parts += ["## Limits", rule.limits]
    parts += ["## Ignore", f"`# osler: ignore[{rule.name}] reason` on the line."]
    if rule.links:
        parts.append("\n".join(f"- <{link}>" for link in rule.links))
    return "\n\n".join(parts)


def _notification(item: NotChecked, index: Mapping[str, int]) -> Json:
    what = words.one_line(item.what)
    notification: Json = {"level": "note", "message": {"text": f"not checked: {what}: {words.one_line(item.why)}"}}
    if item.what in index:
        notification["associatedRule"] = {"id": what, "index": index[item.what]}
    return notification


def _line(finding: Finding) -> str:
    step = f" (step {finding.first_step})" if finding.first_step is not None else ""
    return f"{words.one_line(finding.rule)}: {_cell(finding.where)}{words.sentence(finding.message)}{step}"


def _cell(where: Where) -> str:
    """What stands before a message about a notebook: viewers show the lines of its JSON, people know its cells."""
    if where.cell is None:
        return ""
    return f"cell {where.cell}, line {where.line}: " if where.line is not None else f"cell {where.cell}: "


def _placed(where: Where) -> bool:
    names = (where.file, where.function, where.module, where.parameter, where.optimizer, where.tensor, where.column)
    return any(name is not None for name in names)


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return words.clean(value)
    if isinstance(value, Mapping):
        return {words.one_line(k): _cleaned(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(v) for v in value]
    return value


def _relative(file: str, root: str | None) -> str | None:
    """The path below the root, normalised; None when it lies elsewhere."""
    if not file.startswith("/"):
        inside = os.path.normpath(file)
    elif root:
        inside = os.path.relpath(file, root)
    else:
        return None
    return None if inside.startswith("..") else str(PurePosixPath(inside))


def _file_uri(file: str) -> str:
    return "file://" + _quoted(file) if file.startswith("/") else _quoted(file)


def _quoted(file: str) -> str:
    # The bytes of the path, so that a name that is not UTF-8 still leads to the file.
    return quote(file.encode("utf-8", "surrogateescape" if _bytes_only(file) else "replace"))


def _bytes_only(file: str) -> bool:
    return all(not 0xD800 <= ord(c) <= 0xDFFF or 0xDC80 <= ord(c) <= 0xDCFF for c in file)
