"""Findings for the tests of the records, also for the processes that these start."""

from __future__ import annotations

from osler.core.finding import Confidence, Finding, Severity, Where


def make_finding(line: int = 12, rule: str = "nonfinite-op", step: int = 3, **more: object) -> Finding:
    """A finding as the recorder makes them."""
    facts: dict[str, object] = {
        "rule": rule,
        "severity": Severity.ERROR,
        "confidence": Confidence.DEFINITE,
        "message": f"log made -Infinity at step {step}",
        "where": Where(file="train.py", line=line, step=step),
        "evidence": {"smallest": 0.0, "largest": float("inf")},
        "fix": "add an epsilon",
        "first_step": step,
        "last_step": step,
        "touches": frozenset({"tensor:p"}),
    }
    return Finding(**{**facts, **more})  # type: ignore[arg-type]
