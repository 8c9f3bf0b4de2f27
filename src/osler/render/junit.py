"""The report as JUnit XML, for test dashboards: a test per rule that was judged, and one per finding."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from xml.etree import ElementTree

from osler.core.diagnosis import Place
from osler.core.finding import Confidence, Severity
from osler.core.report import Report
from osler.core.rule import Rule
from osler.render import words

_NO_STEP = "no optimizer step was seen"


def to_junit(
    report: Report,
    rules: Mapping[str, Rule],
    fail_on: Severity = Severity.WARNING,
    judged: Collection[str] | None = None,
) -> str:
    """The report as one `<testsuites>` document, ending with a newline.

    A finding at or above `fail_on` that is at least probable is a failure; a milder one passes and tells in
    `<system-out>`. A rule without findings passes, unless it is among what was not checked: then it is skipped. In a
    run that made no optimizer step nothing passes.

    Args:
        report: what was found.
        rules: the catalogue.
        fail_on: severity from which a finding is a failure.
        judged: names of the rules that were to be judged; those of the subject's route when None.
    """
    cwd = report.subject.get("cwd")
    base = cwd if isinstance(cwd, str) else None
    if judged is None:
        kind = report.subject.get("kind")
        route = "run" if kind in ("run", "watch") else str(kind)
        judged = [name for name, rule in rules.items() if route in rule.routes]
    suite = ElementTree.Element("testsuite", name="osler")
    found = {f.rule for f in report.findings}
    skipped = {n.what for n in report.not_checked}

    failures = 0
    for place in report.diagnosis(rules).in_order():
        failures += _case(suite, place, rules, fail_on, base)
    for item in report.not_checked:
        part = rules[item.what].part if item.what in rules else "not_checked"
        case = ElementTree.SubElement(suite, "testcase", classname=f"osler.{part}", name=words.one_line(item.what))
        ElementTree.SubElement(case, "skipped", message=words.one_line(item.why))
    idle = words.idle(report)
    for name in judged:
        if name in found or name in skipped:
            continue
        part = rules[name].part if name in rules else "rules"
        case = ElementTree.SubElement(suite, "testcase", classname=f"osler.{part}", name=words.one_line(name))
        if idle:
            ElementTree.SubElement(case, "skipped", message=_NO_STEP)

    counts = {
        "tests": str(len(suite.findall("testcase"))),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(len(suite.findall("testcase/skipped"))),
    }
    for key, value in counts.items():
        suite.set(key, value)
    seconds = report.subject.get("seconds")
    if isinstance(seconds, (int, float)):
        suite.set("time", f"{seconds:.3f}")
    started = words.moment(report.subject.get("started"))
    if started:
        suite.set("timestamp", started)
    suites = ElementTree.Element("testsuites", {"name": "osler", **counts})
    suites.append(suite)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(
    suite: ElementTree.Element, place: Place, rules: Mapping[str, Rule], fail_on: Severity, base: str | None
) -> bool:
    """Adds the test of one finding; True when it failed."""
    finding = place.finding
    rule = rules.get(finding.rule)
    at = words.place(finding.where, base)
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"osler.{rule.part if rule else 'rules'}",
        name=words.one_line(f"{finding.rule} ({at})" if at else finding.rule),
    )
    if finding.where.file is not None:
        case.set("file", words.path(finding.where.file, base))
        # The lines of a notebook's cell are none of the file's.
        if finding.where.line is not None and finding.where.cell is None:
            case.set("line", str(finding.where.line))
    text = _text(place, at)
    if finding.severity < fail_on or finding.confidence < Confidence.PROBABLE:
        ElementTree.SubElement(case, "system-out").text = text
        return False
    failure = ElementTree.SubElement(
        case, "failure", type=finding.severity.label, message=words.sentence(finding.message)
    )
    failure.text = text
    return True


def _text(place: Place, at: str) -> str:
    finding = place.finding
    lines = [f"{finding.severity.label} ({finding.confidence.label}): {words.sentence(finding.message)}"]
    details = ", ".join([*([at] if at else []), *words.circumstances(finding.where, finding.first_step)])
    facts = [f"{name}={value}" for name, value in words.evidence(finding.evidence)]
    confirmed = words.confirmed(finding.confirmed)
    lines += [f"at: {details}"] if details else []
    lines += [f"evidence: {', '.join(facts)}"] if facts else []
    lines += [f"fix: {words.advice(finding.fix)}"] if finding.fix else []
    lines += [f"confirmed: {confirmed}"] if confirmed else []
    lines += [f"caused by: {words.one_line(place.cause.finding.rule)} ({place.cause.id})"] if place.cause else []
    return "\n" + "\n".join(lines) + "\n"
