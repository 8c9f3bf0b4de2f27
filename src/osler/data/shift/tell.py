"""What a comparison found, as findings and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import Report, Table
from osler.data.shift.gaussian import Direction, directions, marginal_kl
from osler.data.shift.reference import State
from osler.data.shift.tiers import Threshold, Tier

if TYPE_CHECKING:
    from osler.data.shift.check import Outcome

Floats = NDArray[np.float64]
_SHOWN = 20  # features in the table
_NAMED = 3  # features named in a sentence
_WINDOW = ("Gaussian KL", "MMD")


def label(name: str) -> str:
    """A feature's name in a sentence; those of an array have a position only."""
    return f"feature {name}" if name.isdigit() else name


def statistics(report: Report, outcome: Outcome) -> None:
    """The tables of statistics, of features and of directions."""
    rows: list[list[str | int | float | bool | None]] = [
        ["all rows", s.name, s.value, s.threshold.null, s.threshold.alert, s.threshold.freeze, s.p, s.tier.label]
        for s in outcome.whole
    ]
    if outcome.windows and outcome.thresholds:
        for name, w in (("last window", outcome.windows[-1]), ("worst window", outcome.worst)):
            for word, value, p, t in zip(_WINDOW, (w.kl, w.mmd), (w.kl_p, w.mmd_p), outcome.thresholds):
                rows.append([name, word, value, t.null, t.alert, t.freeze, p, t.tier(value).label])
    report.tables.append(
        Table(
            "statistics",
            ["of", "statistic", "value", "identical data", "alert from", "freeze from", "p", "tier"],
            rows,
            "KL in nats with the value of identical data taken off; MMD is the distance, not its square",
        )
    )
    if outcome.recent is not None:
        _features(report, outcome, outcome.recent)


def _features(report: Report, outcome: Outcome, recent: State) -> None:
    names = outcome.reference.names
    alone = marginal_kl(recent.mean, recent.spread)
    total = float(alone.sum()) or 1.0
    order = np.argsort(-alone, kind="stable")[:_SHOWN]
    moved, spread = recent.mean, recent.spread
    report.tables.append(
        Table(
            "features",
            ["feature", "mean moved by (reference sd)", "spread (reference sd)", "KL of it alone", "share"],
            [[names[j], float(moved[j]), float(spread[j]), float(alone[j]), float(alone[j] / total)] for j in order],
            "each feature by itself, largest first; what moves only jointly (correlations) stands under directions",
        )
    )
    found = directions(outcome.reference.whitener, recent.moments)
    report.tables.append(
        Table(
            "directions",
            ["of", "KL", "amount (reference sd)", "features"],
            [[d.of, d.kl, d.amount, ", ".join(_strongest(d, outcome))] for d in found],
            "combinations of features along which the mean or the spread changed most, with the weight of each feature",
        )
    )


def _strongest(direction: Direction, outcome: Outcome) -> list[str]:
    basis = outcome.reference.basis
    loadings = direction.loadings if basis is None else basis @ direction.loadings
    order = np.argsort(-np.abs(loadings), kind="stable")[:_NAMED]
    return [f"{label(outcome.reference.names[j])} {loadings[j]:+.2f}" for j in order]


def finding(outcome: Outcome, rows: int) -> Finding:
    """The finding of a shift.

    Args:
        outcome: what was found, with a tier above silent.
        rows: rows of the current side.
    """
    names = outcome.reference.names
    most, shares = _most(outcome)
    whole = max((s.tier for s in outcome.whole), default=Tier.SILENT)
    if whole == outcome.tier:
        parts = [_against(s.name, s.value, s.threshold) for s in outcome.whole if s.tier > Tier.SILENT]
        place = "over all rows"
    else:
        worst, limits = outcome.worst, outcome.thresholds or ()
        parts = [_against(n, v, t) for n, v, t in zip(_WINDOW, (worst.kl, worst.mmd), limits) if v >= t.alert]
        place = f"in a window of {outcome.reference.window} rows"
    told = f"; most in {', '.join(f'{label(n)} ({s:.0%})' for n, s in zip(most, shares))}" if most else ""
    noun = f"joint distribution of {len(names)} features" if len(names) > 1 else f"distribution of {label(names[0])}"
    sure = outcome.reference.homogeneous and any(s.tier > Tier.SILENT and s.p <= 0.01 for s in outcome.whole)
    return Finding(
        rule="covariate-shift",
        severity=Severity.ERROR if outcome.tier is Tier.FREEZE else Severity.WARNING,
        confidence=Confidence.DEFINITE if sure else Confidence.PROBABLE,
        message=f"The {noun} moved: {' and '.join(parts)} {place}{_when(outcome)}{told}.",
        where=Where(column=most[0]) if len(names) == 1 and most else Where(),
        evidence=_evidence(outcome, rows) | {"most": dict(zip(most, shares))},
        fix=_fix(outcome.tier, most),
        touches=frozenset(f"column:{name}" for name in most),
    )


def _most(outcome: Outcome) -> tuple[list[str], list[float]]:
    """The features that moved most by themselves, with their shares; none where no feature stands out."""
    if outcome.recent is None:
        return [], []
    names = outcome.reference.names
    alone = marginal_kl(outcome.recent.mean, outcome.recent.spread)
    shares = alone / (float(alone.sum()) or 1.0)
    order = np.argsort(-shares, kind="stable")[:_NAMED]
    kept = [int(j) for j in order if shares[j] > min(2 / len(names), 0.25)]
    return [names[j] for j in kept], [float(shares[j]) for j in kept]


def _evidence(outcome: Outcome, rows: int) -> dict[str, object]:
    evidence: dict[str, object] = {"tier": outcome.tier.label, "features": len(outcome.reference.names), "rows": rows}
    for s in outcome.whole:
        k, limits = s.key, s.threshold
        evidence |= {k: s.value, f"{k}_alert": limits.alert, f"{k}_freeze": limits.freeze, f"{k}_p": s.p}
    if outcome.windows and outcome.thresholds:
        kl, mmd = outcome.thresholds
        evidence |= {"window": outcome.reference.window, "windows": len(outcome.windows)}
        evidence |= {"worst_window_kl": outcome.worst.kl, "worst_window_mmd": outcome.worst.mmd}
        last = outcome.windows[-1]
        evidence |= {"last_window_kl": last.kl, "last_window_mmd": last.mmd, "last_window_tier": last.tier.label}
        evidence |= {"window_kl_alert": kl.alert, "window_mmd_alert": mmd.alert}
    if outcome.began is not None:
        evidence |= {"began_window": outcome.began, "began_row": outcome.starts[outcome.began]}
        evidence["last_row"] = outcome.starts[outcome.ended + 1] - 1
    return evidence


def _when(outcome: Outcome) -> str:
    if outcome.began is None:
        return ""
    first = outcome.starts[outcome.began]
    if outcome.ended < len(outcome.windows) - 1:
        return f", in rows {first} to {outcome.starts[outcome.ended + 1] - 1} (counted from 0)"
    return f", since row {first} (counted from 0)" if first else ", since the first row"


def _against(name: str, value: float, threshold: Threshold) -> str:
    tier = threshold.tier(value)
    return f"{name} {value:.3g} ({tier.label} from {threshold.freeze if tier is Tier.FREEZE else threshold.alert:.3g})"


def _fix(tier: Tier, most: Sequence[str]) -> str:
    where = f", starting at {', '.join(map(label, most))}" if most else ""
    look = f"Look at the source of the current rows first{where}: a broken feed or a changed unit is mended there."
    if tier is Tier.FREEZE:
        return f"{look} If the change is real, take the model out of service and train it anew on rows like these."
    return f"{look} If the change is real, draw and label a fresh sample of current rows, and watch whether it grows."


def constants(changed: dict[str, tuple[int, int]]) -> Finding:
    """The finding for features that never changed in the reference and do now.

    Args:
        changed: by feature, how many of how many values differ.
    """
    shown = sorted(changed, key=lambda name: -changed[name][0] / changed[name][1])
    name, (k, n) = shown[0], changed[shown[0]]
    more = f" (and {len(shown) - 1} more like it)" if len(shown) > 1 else ""
    return Finding(
        rule="covariate-shift",
        severity=Severity.WARNING,
        confidence=Confidence.DEFINITE,
        message=f"{label(name)}{more} is constant in the reference, and {k} of {n} current values differ from that constant.",
        where=Where(column=name),
        evidence={"features": len(shown), "changed": k, "values": n, "share": k / n},
        fix=f"A model has learnt nothing about {label(name)} from the reference: leave it out, or train on data in which it varies.",
        touches=frozenset(f"column:{c}" for c in shown),
    )
