"""A report: the findings of one subject, its environment, its series, and what was not checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from osler.core.diagnosis import Diagnosis, diagnose
from osler.core.finding import Confidence, Finding, Severity
from osler.core.jsonable import strict
from osler.core.rule import Rule

SCHEMA = 1


@dataclass(slots=True)
class Series:
    """A curve or a heat map over steps, or histograms over the same bins.

    Attributes:
        name: what it is, e.g. `loss` or `gradient_norm`; of a histogram, the column.
        kind: `curve` (`values` is one list), `heatmap` (`values[i][j]` belongs to `steps[i]` and `rows[j]`) or
            `histogram` (`values[i][j]` is the share of `rows[i]` that lies in bin j; there are no steps).
        steps: optimizer steps, ascending.
        values: numbers; non-finite ones are kept here and become strings in JSON; None in a heat map where there was none.
        rows: names of the rows of a heat map, from the input side to the output side.
        unit: unit of the values, empty where there is none.
        source: the process it comes from (`main`, `rank 1`, `pid 4711`).
        edges: of a histogram of numbers, the n + 1 ascending edges of its n bins.
        labels: of a histogram of categories, the n names of its bins.
    """

    name: str
    kind: str
    steps: list[int]
    values: list[float] | list[list[float | None]]
    rows: list[str] = field(default_factory=list)
    unit: str = ""
    source: str = "main"
    edges: list[float] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        out: dict[str, object] = {
            "name": self.name,
            "kind": self.kind,
            "source": self.source,
            "unit": self.unit,
            "steps": list(self.steps),
            "values": strict(self.values),
        }
        if self.kind != "curve":
            out["rows"] = list(self.rows)
        if self.kind == "histogram":
            out["edges"] = strict(self.edges)
            out["labels"] = list(self.labels)
        return out


@dataclass(slots=True)
class Table:
    """Figures side by side, as the report shows them.

    Attributes:
        name: its heading, e.g. `features`.
        columns: the headings of its columns.
        rows: one list per row, as long as `columns`; None is an empty cell.
        note: one sentence on how to read it.
    """

    name: str
    columns: list[str]
    rows: list[list[str | int | float | bool | None]]
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {"name": self.name, "columns": list(self.columns), "rows": strict(self.rows), "note": self.note}


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A rule (`is_rule`) or another thing that could not be judged, and why."""

    what: str
    why: str
    is_rule: bool = True

    def to_dict(self) -> dict[str, object]:
        """JSON-ready: `{"rule": …, "why": …}` or `{"what": …, "why": …}`."""
        return {"rule" if self.is_rule else "what": self.what, "why": self.why}


@dataclass(slots=True)
class Report:
    """The findings of one subject.

    Attributes:
        subject: `kind` (`run`, `watch`, `check` …), `command`, `exit_code`, `started`, `seconds`, `steps`, `run` …
        environment: packages, torch build, hardware, seeds.
        findings: in the order in which they were seen.
        not_checked: what could not be judged, and why.
        overhead: `ratio` and what it is made of; empty where nothing was watched.
        series: curves, heat maps and histograms.
        tables: figures side by side, the most telling first.
        notes: lines that the watcher had for the user.
        layers: one row per module call of the first step, where `--trace-layers` asked for it.
        version: osler's version.
    """

    subject: dict[str, object]
    environment: dict[str, object] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    overhead: dict[str, object] = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    layers: list[dict[str, object]] = field(default_factory=list)
    version: str = ""

    def diagnosis(self, rules: Mapping[str, Rule]) -> Diagnosis:
        """The findings arranged as causes with their symptoms, by the rules' `causes`."""
        return diagnose(self.findings, {name: frozenset(rule.causes) for name, rule in rules.items()})

    def at_least(self, severity: Severity, confidence: Confidence = Confidence.PROBABLE) -> list[Finding]:
        """The findings at or above a severity and a confidence."""
        return [f for f in self.findings if f.severity >= severity and f.confidence >= confidence]

    def to_dict(self, rules: Mapping[str, Rule]) -> dict[str, object]:
        """The JSON contract (see `osler schema`)."""
        diagnosis = self.diagnosis(rules)
        findings: list[dict[str, object]] = []
        for place in diagnosis.in_order():
            entry: dict[str, object] = {"id": place.id}
            entry.update(place.finding.to_dict())
            entry["root"] = place.cause is None
            entry["caused_by"] = place.cause.id if place.cause else None
            entry["symptoms"] = [s.id for s in place.symptoms]
            findings.append(entry)
        return {
            "osler": self.version,
            "schema": SCHEMA,
            "subject": strict(self.subject),
            "environment": strict(self.environment),
            "findings": findings,
            "not_checked": [n.to_dict() for n in self.not_checked],
            "overhead": strict(self.overhead),
            "series": [s.to_dict() for s in self.series],
            "tables": [t.to_dict() for t in self.tables],
            "notes": list(self.notes),
            "layers": strict(self.layers),
        }
