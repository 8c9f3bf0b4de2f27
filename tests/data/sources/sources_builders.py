"""Small sources with a known truth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from osler.core.finding import Finding, Severity
from osler.core.report import Report

S = 1_000_000_000
BASE = 1_704_000_000 * S
DAY = 86_400 * S


def instants(ns: np.ndarray, zone: str | None = "UTC", unit: str = "ns") -> pa.Array:
    return pa.array(np.asarray(ns, np.int64), pa.timestamp(unit, zone))


def events(rng: np.random.Generator, n: int = 2000, days: float = 30) -> np.ndarray:
    return np.sort(BASE + rng.integers(0, int(days * DAY), n))


def noise(rng: np.random.Generator, n: int, seconds: float = 0.05) -> np.ndarray:
    return (rng.normal(0, seconds, n) * S).astype(np.int64)


def table(ids: object, ns: np.ndarray, zone: str | None = "UTC") -> pa.Table:
    return pa.table({"id": ids, "t": instants(ns, zone)})


def kinds(report: Report, at_least: Severity = Severity.WARNING) -> list[str]:
    return [str(f.evidence["kind"]) for f in report.findings if f.severity >= at_least]


def only(report: Report, kind: str) -> Finding:
    found = [f for f in report.findings if f.evidence["kind"] == kind]
    assert len(found) == 1, [f.message for f in report.findings]
    return found[0]
