"""`check preprocess`: is the fitted state in use the one that was trained with?"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Table
from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.preprocess.differences import UNKNOWN, Change, StepChanges, differences
from osler.data.preprocess.snapshots import StateSnapshot, load_snapshot, snapshot

RULE = "preprocess-state-changed"
_SHOWN = 3  # features that a message names
_ROWS = 200  # rows of the table
_GRAVE = {"order", "missing", "shape"}
_COLUMNS = ["step", "attribute", "column", "training", "serving", "change", "in spreads", "relative to"]


def check_preprocess(
    training: object,
    serving: object,
    *,
    tolerance: float | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Compare the fitted state that serves with the one that was trained with.

    Args:
        training: a snapshot, the path of one, or a fitted transformer.
        serving: likewise.
        tolerance: change of a fitted number, relative to the spread of its column, that counts as none; by default
            `preprocess.state_noise`.
        settings: the settings tree.
        progress: told of both sides.

    Returns:
        One finding a step that differs, and a table of every difference.

    Raises:
        DataError: a file is no snapshot, an object is not fitted, or the tolerance is negative.
    """
    tree = settings or Settings()
    noise = tree.preprocess.state_noise if tolerance is None else tolerance
    if not noise >= 0 or not math.isfinite(noise):
        raise DataError(f"tolerance is {noise!r}; it must be a number of at least 0")
    progress("snapshots", 0, 2)
    old, old_name = _state(training, "training", tree.data.show_values)
    progress("snapshots", 1, 2)
    new, new_name = _state(serving, "serving", tree.data.show_values)
    progress("snapshots", 2, 2)
    changed = differences(old, new, noise)
    limits = tree.preprocess
    findings = [_finding(step, limits.state_moved, limits.state_far) for step in changed]
    findings += _versions(old, new)
    report = Report(
        subject={
            "kind": "check",
            "check": "preprocess",
            "reference": old_name,
            "current": new_name,
            "reference_hash": old.hash,
            "current_hash": new.hash,
            "same": old.hash == new.hash,
        },
        findings=findings,
        not_checked=[
            NotChecked(RULE, f"`{name}` of {step.path or old.name} is of a kind that cannot be read")
            for step in old.steps
            for name in step.opaque
        ],
    )
    if changed:
        report.tables.append(_table(changed))
    return report


def _state(what: object, side: str, show_values: bool) -> tuple[StateSnapshot, str]:
    if isinstance(what, StateSnapshot):
        return what, what.name
    if isinstance(what, (str, Path)):
        return load_snapshot(what), str(what)
    if what is None or isinstance(what, type) or not hasattr(what, "__dict__"):
        raise DataError(f"the {side} side is {type(what).__name__}; give a snapshot, its file, or a fitted transformer")
    return snapshot(what, show_values=show_values), type(what).__name__


def _finding(step: StepChanges, moved: float, far: float) -> Finding:
    severity = max(_severity(change, moved, far) for change in step.changes)
    worst = sorted(
        step.changes, key=lambda c: (-_severity(c, moved, far), -c.size if math.isfinite(c.size) else -1e300)
    )
    lead = worst[0]
    column = next((c.feature for c in worst if c.feature), None)
    sizes = [c.size for c in step.changes if math.isfinite(c.size) and c.kind == "number"]
    evidence: dict[str, object] = {
        "changes": len(step.changes),
        "attributes": sorted({c.what for c in step.changes}),
        "largest_in_spreads": max(sizes, default=0.0),
    }
    features = list(dict.fromkeys(c.feature for c in worst if c.feature))
    if features:
        evidence["columns"] = features[:20]
        evidence["columns_changed"] = len(features)
    return Finding(
        RULE,
        severity,
        Confidence.DEFINITE,
        _message(step, lead, worst, features),
        Where(column=column, module=step.path or None),
        evidence,
        _fix(step, lead),
        touches=frozenset(f"column:{name}" for name in features),
    )


def _severity(change: Change, moved: float, far: float) -> Severity:
    if change.kind == "count":
        return Severity.INFO
    if change.kind in _GRAVE:
        return Severity.ERROR
    if change.kind == "words":
        return Severity.ERROR if change.size == UNKNOWN else Severity.WARNING
    if change.kind == "setting":
        return Severity.WARNING
    if change.kind == "number":
        return Severity.ERROR if change.size >= far else Severity.WARNING if change.size >= moved else Severity.INFO
    return Severity.WARNING


def _message(step: StepChanges, lead: Change, changes: list[Change], features: list[str]) -> str:
    if lead.kind == "missing" and lead.what == "step":
        side = "in training only" if lead.new == "absent" else "in serving only"
        return f"{step.name} is there {side}"
    if lead.kind == "missing" and lead.what == "columns":
        gone = [c.feature for c in changes if c.what == "columns" and c.new == "absent"]
        new = [c.feature for c in changes if c.what == "columns" and c.old == "absent"]
        parts = [f"{len(n)} {word} ({_named(n)})" for n, word in ((gone, "missing"), (new, "new")) if n]
        return f"{step.name} was fitted on other columns in serving: {' and '.join(parts)}"
    if lead.kind == "order":
        moved = [c.feature for c in changes if c.kind == "order"]
        return f"{step.name} takes its columns in another order in serving: {len(moved)} moved ({_named(moved)})"
    if lead.kind == "number":
        alike = [c for c in changes if c.what == lead.what and c.kind == "number"]
        among = [f for f in features if any(c.feature == f for c in alike)]
        of = f" of {len(among)} columns, most of `{lead.feature}`" if len(among) > 1 else ""
        one = f" of `{lead.feature}`" if len(among) == 1 else ""
        also = sorted({c.what for c in changes} - {lead.what})
        tail = f"; also {', '.join(also[:_SHOWN])}{' …' if len(also) > _SHOWN else ''}" if also else ""
        size = "" if lead.size == UNKNOWN else f", {lead.size:.3g} times {lead.relative_to} away"
        return (
            f"{step.name}: {lead.what}{of or one} is {_number(lead.new)} in serving and {_number(lead.old)} in "
            f"training{size}{tail}"
        )
    return f"{step.name}: {lead.what} is {_number(lead.new)} in serving and {_number(lead.old)} in training"


def _fix(step: StepChanges, lead: Change) -> str:
    if lead.kind == "setting":
        return f"serve with {lead.what}={lead.old}, as in training, or train again with {lead.what}={lead.new}"
    if lead.kind in ("order",) or (lead.kind == "missing" and lead.what == "columns"):
        return "give the columns by name and in the order of training, or fit and train again on the new ones together"
    if lead.kind == "count":
        return "nothing, if the numbers beside it are the same"
    return (
        "load the state that was saved with the model instead of fitting again on serving data; keep both in one file, a "
        "Pipeline, so that neither changes without the other"
    )


def _named(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _versions(old: StateSnapshot, new: StateSnapshot) -> list[Finding]:
    out = []
    for library in sorted({*old.libraries, *new.libraries}):
        before, after = old.libraries.get(library), new.libraries.get(library)
        if before and after and before != after:
            out.append(
                Finding(
                    RULE,
                    Severity.INFO,
                    Confidence.DEFINITE,
                    f"{library} is {before} in training and {after} in serving",
                    Where(module=library),
                    {"library": library, "training": before, "serving": after},
                    f"pin {library}=={before} in serving, or fit again; scikit-learn promises nothing between versions",
                )
            )
    return out


def _table(changed: list[StepChanges]) -> Table:
    entries = [(step, change) for step in changed for change in step.changes]
    entries.sort(key=lambda e: -min(e[1].size, 1e300))
    rows: list[list[str | int | float | bool | None]] = []
    for step, c in entries[:_ROWS]:
        difference = c.new - c.old if isinstance(c.old, float) and isinstance(c.new, float) else None
        size = c.size if math.isfinite(c.size) else None
        rows.append([step.path or step.name, c.what, c.feature, c.old, c.new, difference, size, c.relative_to])
    left = len(entries) - len(rows)
    return dataclasses.replace(
        Table(name="changed state", columns=_COLUMNS, rows=rows), note=f"{left:,} more" if left else ""
    )
