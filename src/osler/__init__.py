"""osler finds what is wrong with a machine-learning model and says why.

Importing this package imports neither torch nor numpy: each public name is fetched when it is first asked for (PEP 562).
"""

from __future__ import annotations

__version__ = "0.1.0"

# typing.TYPE_CHECKING without importing typing: this module is loaded in every watched process
TYPE_CHECKING = False

if TYPE_CHECKING:
    from osler.app.watch import Watch as Watch
    from osler.app.watch import watch as watch
    from osler.core.finding import Confidence as Confidence
    from osler.core.finding import Finding as Finding
    from osler.core.finding import Severity as Severity
    from osler.core.finding import Where as Where
    from osler.core.report import Report as Report
    from osler.core.rule import Rule as Rule
    from osler.core.settings import Settings as Settings
    from osler.data.drift import DriftMonitor as DriftMonitor
    from osler.data.drift import Profile as Profile
    from osler.data.drift import build_profile as build_profile
    from osler.data.drift import check_drift as check_drift
    from osler.data.labels import LabelAudit as LabelAudit
    from osler.data.labels import audit_labels as audit_labels
    from osler.data.labels import check_labels as check_labels
    from osler.data.labels import check_mapping as check_mapping
    from osler.data.missing import SensitivityImputer as SensitivityImputer
    from osler.data.missing import check_missing as check_missing
    from osler.data.missing import check_outliers as check_outliers
    from osler.data.preprocess import check_preprocess as check_preprocess
    from osler.data.preprocess import guard as guard
    from osler.data.preprocess import snapshot as snapshot
    from osler.data.shift import Gate as Gate
    from osler.data.shift import ShiftMonitor as ShiftMonitor
    from osler.data.shift import check_shift as check_shift
    from osler.data.sources import asof_join as asof_join
    from osler.data.sources import check_batches as check_batches
    from osler.data.sources import check_sources as check_sources
    from osler.data.splits import TimeSplit as TimeSplit
    from osler.data.splits import check_splits as check_splits
    from osler.training.tags import tag as tag

_HOMES = {
    "Confidence": "osler.core.finding",
    "DriftMonitor": "osler.data.drift",
    "Finding": "osler.core.finding",
    "Gate": "osler.data.shift",
    "LabelAudit": "osler.data.labels",
    "Profile": "osler.data.drift",
    "Report": "osler.core.report",
    "Rule": "osler.core.rule",
    "SensitivityImputer": "osler.data.missing",
    "Settings": "osler.core.settings",
    "Severity": "osler.core.finding",
    "ShiftMonitor": "osler.data.shift",
    "TimeSplit": "osler.data.splits",
    "Watch": "osler.app.watch",
    "Where": "osler.core.finding",
    "asof_join": "osler.data.sources",
    "audit_labels": "osler.data.labels",
    "build_profile": "osler.data.drift",
    "check_batches": "osler.data.sources",
    "check_drift": "osler.data.drift",
    "check_labels": "osler.data.labels",
    "check_mapping": "osler.data.labels",
    "check_missing": "osler.data.missing",
    "check_outliers": "osler.data.missing",
    "check_preprocess": "osler.data.preprocess",
    "check_shift": "osler.data.shift",
    "check_sources": "osler.data.sources",
    "check_splits": "osler.data.splits",
    "guard": "osler.data.preprocess",
    "snapshot": "osler.data.preprocess",
    "tag": "osler.training.tags",
    "watch": "osler.app.watch",
}

__all__ = [  # noqa: RUF022 - the order people meet them in
    "watch",
    "tag",
    "guard",
    "check_splits",
    "check_preprocess",
    "check_labels",
    "check_mapping",
    "check_drift",
    "check_shift",
    "check_missing",
    "check_outliers",
    "check_sources",
    "check_batches",
    "audit_labels",
    "LabelAudit",
    "build_profile",
    "Profile",
    "DriftMonitor",
    "ShiftMonitor",
    "Gate",
    "SensitivityImputer",
    "TimeSplit",
    "asof_join",
    "snapshot",
    "Watch",
    "Report",
    "Finding",
    "Where",
    "Severity",
    "Confidence",
    "Rule",
    "Settings",
    "__version__",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'osler' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
