"""The report on a terminal or in a pipe."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from osler.core.diagnosis import Place
from osler.core.finding import Confidence, Finding
from osler.core.report import Report
from osler.core.rule import Rule
from osler.render import words
from osler.render.explain import print_explain as print_explain
from osler.render.layers import print_layers as print_layers
from osler.render.outline import below, outline, shown
from osler.render.pen import QUIET, SEVERITY_STYLE, Part, Pen
from osler.render.source import Excerpt, Reader
from osler.render.source import reader as reading

SYMPTOMS_SHOWN = 5
NAMES_SHOWN = 4


def live_line(finding: Finding, console: Console) -> None:
    """Print one finding in one line, for use while the script runs."""
    at = words.place(finding.where, _here())
    step = finding.first_step if finding.first_step is not None else finding.where.step
    parts: list[Part] = [("osler ", QUIET), *_head(finding), " ", words.sentence(finding.message, 400)]
    tail = [*([at] if at else []), *([f"step {step}"] if step is not None else [])]
    if tail:
        parts.append((f"  {', '.join(tail)}", QUIET))
    Pen(console).line(*parts, hang=6)


def print_report(
    report: Report,
    rules: Mapping[str, Rule],
    console: Console,
    *,
    all: bool = False,
    verbose: bool = False,
    source: Reader | None = None,
) -> None:
    """Print the diagnosis, one summary line, and what was not checked.

    Args:
        report: what was found.
        rules: the catalogue; findings of unknown rules are printed as roots.
        console: where to.
        all: also print findings that are only `possible`.
        verbose: print every symptom, and what was not checked with its reasons.
        source: reads source excerpts; by default relative to the subject's `cwd`.
    """
    cwd = report.subject.get("cwd")
    printer = _Printer(Pen(console), source or reading(cwd if isinstance(cwd, str) else None), all, verbose)
    printer.of_data = report.subject.get("kind") == "check"
    plan = outline(report, rules, all=all)
    for root in plan.roots:
        printer.root(root)
        printer.pen.blank()
    if report.tables or any(s.kind == "histogram" for s in report.series):
        # Here, because a run has none and live findings should not wait for rich's tables.
        from osler.render.tables import print_tables

        print_tables(report, console, verbose)
    printer.summary(report, len(plan.roots), len(plan.held_back))
    printer.not_checked(report)
    for note in report.notes:
        printer.pen.line(("note: ", QUIET), words.one_line(note), hang=6)


class _Printer:
    def __init__(self, pen: Pen, source: Reader, all: bool, verbose: bool) -> None:
        self.pen = pen
        self.source = source
        self.all = all
        self.verbose = verbose
        self.here = _here()
        self.of_data = False  # a finding about the whole of the data has no place to name

    def root(self, place: Place) -> None:
        finding = place.finding
        self.pen.line(*_head(finding), " ", (words.sentence(finding.message), "bold"), hang=2)
        self.place(finding)
        facts = words.evidence(finding.evidence)
        if facts:
            self.row("evidence", ", ".join(f"{n}={v}" for n, v in facts))
        if finding.fix:
            self.row("fix", words.advice(finding.fix))
        confirmed = words.confirmed(finding.confirmed)
        if confirmed:
            self.row("confirmed", confirmed, "green" if finding.confirmed else "yellow")
        self.symptoms(place)

    def place(self, finding: Finding) -> None:
        where = finding.where
        at = words.place(where, self.here)
        if where.file is not None and where.function is not None:
            at += f" in {words.one_line(where.function, 120)}"
        details = words.circumstances(where, finding.first_step)
        if where.file is None and at in details:
            details.remove(at)
        seen = words.seen(finding)
        details += [seen] if seen else []
        if self.of_data and not at and not details:
            return
        parts: list[Part] = [("--> ", "blue"), at or "no place in the source"]
        if details:
            parts.append((f"  ({', '.join(details)})", QUIET))
        self.pen.line(*parts, indent=2, hang=6)
        if where.file is not None and where.line is not None:
            found = self.source(where.file, where.line, where.cell)
            if found is not None:
                self.excerpt(found)

    def excerpt(self, found: Excerpt) -> None:
        width = len(str(found.first + len(found.lines) - 1))
        margin = min((len(t) - len(t.lstrip()) for t in found.lines if t.strip()), default=0)
        for number, text in enumerate(found.lines, found.first):
            text = text[margin:]
            if number == found.line:
                self.pen.raw(("  > ", "bold red"), (f"{number:>{width}} | ", "blue"), text)
            else:
                self.pen.raw("    ", (f"{number:>{width}} | ", "blue"), (text, QUIET))

    def row(self, name: str, text: str, style: str = "") -> None:
        self.pen.line((f"{name:<10} ", "bold"), (text, style), indent=2, hang=13)

    def symptoms(self, place: Place) -> None:
        found = [(d, p) for d, p in below(place) if self.all or shown(p)]
        if not found:
            return
        self.pen.line(("brought about", "bold"), indent=2)
        folded = 0 if self.verbose or len(found) <= SYMPTOMS_SHOWN else len(found) - SYMPTOMS_SHOWN
        for depth, symptom in found[: len(found) - folded]:
            finding = symptom.finding
            at = words.place(finding.where, self.here)
            step = [f"step {finding.first_step}"] if finding.first_step is not None else []
            tail = ", ".join([*([at] if at else []), *step])
            indent = 2 + 2 * min(depth, 6)
            text = words.sentence(finding.message)
            self.pen.line(
                *_head(finding), " ", text, (f"  {tail}" if tail else "", QUIET), indent=indent, hang=indent + 2
            )
        if folded:
            rest = words.tally(p.finding for _, p in found[-folded:])
            self.pen.line((f"... and {folded} more ({rest}); --verbose lists them", QUIET), indent=4, hang=6)

    def summary(self, report: Report, causes: int, held_back: int) -> None:
        subject = report.subject
        shown_findings = [f for f in report.findings if self.all or f.confidence > Confidence.POSSIBLE]
        watched = words.watched(report)
        missed = len(report.not_checked)
        parts: list[str] = []
        if shown_findings:
            parts.append(f"{words.tally(shown_findings)} from {words.count(causes, 'cause')}")
            parts.append(f"{watched} watched" if watched else "")
        elif words.idle(report):
            parts.append("no optimizer step was seen, so nothing could be said about a training")
        else:
            parts.append(f"nothing found in {watched}" if watched else "nothing found")
        if not shown_findings:
            unchecked = f"{words.count(missed, 'thing was', 'things were')} not checked"
            parts.append(unchecked if missed else "nothing is listed as unchecked")
        parts.append(words.cost(report.overhead))
        if held_back:
            parts.append(f"{words.count(held_back, 'possible finding')} held back (--all shows them)")
        run = subject.get("run")
        if run is not None:
            name = words.one_line(run, 100)
            folder = subject.get("folder")
            at = words.path(str(folder), self.here) if folder is not None else f".osler/runs/{name}"
            parts.append(f"stored in {at} (`osler report {name}` shows it again)")
        style = max((SEVERITY_STYLE[f.severity] for f in shown_findings), key=_STYLES.index, default="bold")
        self.pen.line(("osler: ", "bold"), (parts[0], style), "".join(f"; {p}" for p in parts[1:] if p), hang=7)

    def not_checked(self, report: Report) -> None:
        items = report.not_checked
        if not items:
            return
        if self.verbose:
            self.pen.line(("not checked:", "bold"))
            for item in items:
                self.pen.line(words.one_line(item.what), (f": {words.one_line(item.why)}", QUIET), indent=2, hang=4)
            return
        names = list(dict.fromkeys(words.one_line(i.what, 60) for i in items))
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        text = f"{len(items)} ({', '.join(names[:NAMES_SHOWN])}{more}); --verbose gives the reasons"
        self.pen.line(("not checked: ", "bold"), (text, QUIET), hang=2)


_STYLES: Sequence[str] = [SEVERITY_STYLE[s] for s in sorted(SEVERITY_STYLE)]


def _head(finding: Finding) -> list[Part]:
    """`error[log-of-zero]`, with the confidence when it is not definite."""
    parts: list[Part] = [
        (f"{finding.severity.label}[{words.one_line(finding.rule, 80)}]", SEVERITY_STYLE[finding.severity])
    ]
    if finding.confidence != Confidence.DEFINITE:
        parts.append((f" ({finding.confidence.label})", QUIET))
    return parts


def _here() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        # The directory was removed while the script ran.
        return os.environ.get("PWD")
