"""The report as one HTML file that opens from disk and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from osler.core.diagnosis import Place
from osler.core.finding import Confidence, Finding
from osler.core.jsonable import dumps
from osler.core.report import Report, Table
from osler.core.rule import Rule
from osler.render import words
from osler.render.distributions import drawing
from osler.render.figures import Figure, figures
from osler.render.layers import cells
from osler.render.outline import below, outline
from osler.render.source import Excerpt, Reader
from osler.render.source import reader as reading
from osler.render.tables import cell

MAX_BYTES = 3_000_000

# Shares of the usual detail that are tried until the page fits.
_DETAIL = (1.0, 0.5, 0.25, 0.1, 0.02)
_MOST = {
    "roots": 100,
    "symptoms": 200,
    "layers": 1000,
    "not_checked": 500,
    "figures": 60,
    "notes": 100,
    "facts": 300,
    "rows": 300,
}


@dataclass(slots=True)
class Shown:
    """A finding as the page shows it; all fields are text or made of text."""

    id: str
    rule: str
    severity: str
    confidence: str
    message: str
    place: str
    function: str
    details: list[str]
    seen: str
    fix: str
    confirmed: str
    holds: bool
    evidence: list[tuple[str, str]]
    excerpt: Excerpt | None
    about: Rule | None
    symptoms: list[Shown] = field(default_factory=list)
    left_out: int = 0
    spread: int = 0


def page(report: Report, rules: Mapping[str, Rule], source: Reader | None = None) -> str:
    """The report as a self-contained page of at most 3 MB.

    Long curves and large heat maps are thinned (extremes and non-finite points are kept) and long lists cut with a
    count, ever more until the page fits.

    Args:
        report: what was found.
        rules: the catalogue; a finding of an unknown rule is shown without its background.
        source: reads source excerpts; by default relative to the subject's `cwd`.
    """
    cwd = report.subject.get("cwd")
    base = cwd if isinstance(cwd, str) else None
    read = source or reading(base)
    text = ""
    for detail in _DETAIL:
        text = _Page(report, rules, read, base, detail).render()
        if len(text.encode("utf-8")) <= MAX_BYTES:
            break
    return text


class _Page:
    def __init__(
        self, report: Report, rules: Mapping[str, Rule], read: Reader, base: str | None, detail: float
    ) -> None:
        self.report = report
        self.rules = rules
        self.read = read
        self.base = base
        self.detail = detail

    def render(self) -> str:
        report = self.report
        plan = outline(report, self.rules)
        roots = [self.shown(place) for place in plan.roots[: self.most("roots")]]
        held_back = [self.shown(place) for place in plan.held_back[: self.most("roots")]]
        drawn = [d for s in report.series if s.kind == "histogram" and (d := drawing(s)) is not None]
        over_steps = [s for s in report.series if s.kind != "histogram"]
        charts = figures(over_steps[: self.most("figures")], self.detail)
        script, style = _asset("report.js"), _asset("report.css")
        return (
            _environment()
            .get_template("report.html.j2")
            .render(
                title=self.headline(plan.roots),
                severity=max((f.severity for f in self.visible()), default=None),
                tally=words.tally(self.visible()) if plan.roots else "",
                causes=len(plan.roots),
                command=words.command(report.subject),
                facts=self.facts(),
                roots=roots,
                roots_left_out=len(plan.roots) - len(roots),
                held_back=held_back,
                held_back_count=len(plan.held_back),
                curves=[c for c in charts if c.kind == "curve"],
                heatmaps=[c for c in charts if c.kind == "heatmap"],
                series_left_out=max(0, len(over_steps) - self.most("figures")),
                histograms=drawn[: self.most("figures")],
                histograms_left_out=max(0, len(drawn) - self.most("figures")),
                tables=[self.table(t) for t in report.tables],
                layers=[cells(row) for row in report.layers[: self.most("layers")]],
                layers_left_out=max(0, len(report.layers) - self.most("layers")),
                environment=words.evidence(report.environment)[: self.most("facts")],
                overhead=words.evidence(report.overhead)[: self.most("facts")],
                cost=words.cost(report.overhead),
                not_checked=[
                    (words.one_line(n.what, 300), words.one_line(n.why, 600))
                    for n in report.not_checked[: self.most("not_checked")]
                ],
                not_checked_count=len(report.not_checked),
                notes=[words.one_line(n, 600) for n in report.notes[: self.most("notes")]],
                version=report.version,
                data=_embedded({"figures": _drawn(charts), "marks": self.marks(plan.roots)}),
                script=Markup(script),
                style=Markup(style),
                script_hash=_hash(script),
                style_hash=_hash(style),
            )
        )

    def most(self, kind: str) -> int:
        return max(int(_MOST[kind] * self.detail), 5)

    def visible(self) -> list[Finding]:
        return [f for f in self.report.findings if f.confidence > Confidence.POSSIBLE]

    def headline(self, roots: list[Place]) -> str:
        if not roots:
            if words.idle(self.report):
                return "No optimizer step was seen"
            watched = words.watched(self.report)
            return f"Nothing found in {watched}" if watched else "Nothing found"
        first = roots[0].finding
        at = words.place(first.where, self.base)
        name = words.one_line(first.rule, 80)
        more = f", and {words.count(len(roots) - 1, 'more cause')}" if len(roots) > 1 else ""
        return f"{name} at {at}{more}" if at else f"{name}{more}"

    def facts(self) -> list[tuple[str, str]]:
        subject = self.report.subject
        seconds = subject.get("seconds")
        steps = words.steps(subject)
        exit_code = subject.get("exit_code")
        pairs = [
            ("Started", words.moment(subject.get("started")).replace("T", " ")),
            ("Took", _duration(float(seconds)) if isinstance(seconds, (int, float)) else ""),
            ("Steps watched", "" if steps is None else f"{steps:,}"),
            ("Watching cost", words.cost(self.report.overhead).removeprefix("watching cost ")),
            ("Exit code", "" if exit_code is None else words.one_line(exit_code, 40)),
            ("Run", words.one_line(subject.get("run") or "", 80)),
        ]
        return [(name, value) for name, value in pairs if value]

    def shown(self, place: Place, depth: int = 0) -> Shown:
        finding = place.finding
        where = finding.where
        at = words.place(where, self.base)
        details = words.circumstances(where, finding.first_step)
        if where.file is None and at in details:
            details.remove(at)
        excerpt = None
        if depth == 0 and where.file is not None and where.line is not None:
            excerpt = self.read(where.file, where.line, where.cell)
        symptoms = place.symptoms[: self.most("symptoms")] if depth < 8 else []
        return Shown(
            id=place.id,
            rule=words.one_line(finding.rule, 100),
            severity=finding.severity.label,
            confidence=finding.confidence.label,
            message=words.sentence(finding.message),
            place=at,
            function=words.one_line(where.function or "", 120),
            details=details,
            seen=words.seen(finding),
            fix=words.clean(finding.fix)[:4000],
            confirmed=words.confirmed(finding.confirmed),
            holds=bool(finding.confirmed),
            evidence=words.evidence(finding.evidence)[:60],
            excerpt=excerpt,
            about=self.rules.get(finding.rule),
            symptoms=[self.shown(s, depth + 1) for s in symptoms],
            left_out=len(place.symptoms) - len(symptoms),
            spread=sum(1 for _ in below(place)),
        )

    def table(self, table: Table) -> dict[str, object]:
        most = self.most("rows")
        return {
            "name": words.one_line(table.name, 100),
            "note": words.one_line(table.note, 600),
            "columns": [words.one_line(c, 60) for c in table.columns],
            "rows": [[cell(value) for value in row] for row in table.rows[:most]],
            "left_out": max(0, len(table.rows) - most),
        }

    def marks(self, roots: Iterable[Place]) -> list[dict[str, object]]:
        """Where the causes begin, for the curves."""
        marks: list[dict[str, object]] = []
        for place in roots:
            step = place.finding.first_step
            if step is None:
                step = place.finding.where.step
            if step is not None and len(marks) < 12:
                rule = words.one_line(place.finding.rule, 80)
                marks.append({"id": place.id, "rule": rule, "step": step, "severity": place.finding.severity.label})
        return marks


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("osler.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every text that reaches the page passes through here, whatever part of the report it comes from.
        finalize=lambda v: words.clean(v) if isinstance(v, str) and not isinstance(v, Markup) else v,
    )


def _drawn(charts: Iterable[Figure]) -> list[dict[str, object]]:
    return [chart.data for chart in charts]


def _embedded(value: object) -> Markup:
    """JSON that can stand inside a script element whatever strings it holds."""
    text = dumps(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(text)


def _asset(name: str) -> str:
    return (files("osler.render") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The source expression by which the content security policy lets exactly this inline text through."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
