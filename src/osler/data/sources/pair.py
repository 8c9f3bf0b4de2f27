"""Two sources beside each other: what is known before anything is judged, and how a finding is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked
from osler.core.settings import Sources
from osler.data.sources.estimate import Clocks
from osler.data.sources.ids import Overlap, Tally, overlap, tally
from osler.data.sources.keys import Coded, encode
from osler.data.sources.read import Stream

RULE = "source-misaligned"


@dataclass(slots=True)
class Pair:
    """Two sources, the first of them the reference.

    Attributes:
        tolerance: ns that times of one event may differ, None where none was given.
        coded, tallies, shared: their ids side by side; None without ids.
        clocks: what the comparison of the clocks found; None where they could not be compared.
        findings, skipped: what the judges say, and what they could not judge.
    """

    left: Stream
    right: Stream
    tolerance: int | None
    settings: Sources
    coded: Coded | None = None
    tallies: tuple[Tally, Tally] | None = None
    shared: Overlap | None = None
    clocks: Clocks | None = None
    findings: list[Finding] = field(default_factory=list)
    skipped: list[NotChecked] = field(default_factory=list)

    @classmethod
    def of(cls, left: Stream, right: Stream, tolerance: int | None, settings: Sources) -> Pair:
        """Encode and match the ids."""
        pair = cls(left, right, tolerance, settings)
        if left.keys is not None and right.keys is not None:
            pair.coded = encode(left.keys, right.keys)
            ours = tally(pair.coded.left, left.keys.valid)
            theirs = tally(pair.coded.right, right.keys.valid)
            pair.tallies = (ours, theirs)
            pair.shared = overlap(ours, theirs)
        return pair

    @property
    def shape(self) -> str:
        """`none` (no ids), `one` (each id names a row on both sides), `left` or `right` (it names one row only there, and
        many on the other side), `many` (ids name series on both sides)."""
        if self.tallies is None:
            return "none"
        ours, theirs = (t.repeated > self.settings.duplicate for t in self.tallies)
        return {(False, False): "one", (False, True): "left", (True, False): "right", (True, True): "many"}[
            ours, theirs
        ]

    @property
    def slack(self) -> float:
        """ns by which clocks may differ: the tolerance, or the default."""
        return float(self.tolerance) if self.tolerance is not None else self.settings.tolerance_s * 1e9

    def report(
        self,
        kind: str,
        severity: Severity,
        confidence: Confidence,
        message: str,
        fix: str,
        column: str,
        evidence: dict[str, object],
    ) -> None:
        """Add a finding."""
        facts = {"kind": kind, "sources": [self.left.name, self.right.name], **evidence}
        self.findings.append(finding(severity, confidence, message, fix, column, facts))

    def skip(self, what: str, why: str) -> None:
        """Say what could not be judged."""
        self.skipped.append(NotChecked(f"{what}: {self.left.name} against {self.right.name}", why, is_rule=False))


def finding(
    severity: Severity, confidence: Confidence, message: str, fix: str, column: str, evidence: dict[str, object]
) -> Finding:
    """A finding of the rule source-misaligned about a column."""
    return Finding(
        RULE,
        severity,
        confidence,
        message,
        where=Where(column=column),
        evidence=evidence,
        fix=fix,
        touches=frozenset({f"column:{column}"}),
    )
