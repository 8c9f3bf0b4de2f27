"""Findings given so far: each is handed on once, later occurrences are counted."""

from __future__ import annotations

from collections.abc import Sequence

from osler.core.finding import Finding
from osler.core.settings import Settings
from osler.core.sink import Sink


class Ledger:
    """Between the monitors and the sink."""

    def __init__(self, sink: Sink, settings: Settings) -> None:
        self._sink = sink
        self._ignore = frozenset(settings.ignore)
        self._select = frozenset(settings.select)
        self.seen: dict[str, Finding] = {}

    def emit(self, findings: Sequence[Finding]) -> None:
        """Hand findings on; those of rules that are ignored or not selected are dropped."""
        for finding in findings:
            if finding.rule in self._ignore or (self._select and finding.rule not in self._select):
                continue
            known = self.seen.get(finding.key)
            if known is None:
                self.seen[finding.key] = finding
                self._sink.finding(finding)
            else:
                self._again(known, finding.last_step)

    def repeat(self, rule: str, step: int) -> bool:
        """Count one more occurrence of a rule's finding; False where there is none."""
        known = next((f for f in self.seen.values() if f.rule == rule), None)
        if known is None:
            return False
        self._again(known, step)
        return True

    def _again(self, known: Finding, step: int | None) -> None:
        known.count += 1
        known.last_step = step
        if known.count & (known.count - 1) == 0:  # at powers of two: enough to survive a kill
            self._sink.again(known.key, known.count, known.last_step)

    def close(self) -> None:
        """Write the final counts."""
        for finding in self.seen.values():
            if finding.count > 1:
                self._sink.again(finding.key, finding.count, finding.last_step)
