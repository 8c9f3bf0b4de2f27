"""An audit of labels as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import NotChecked, Report, Series, Table
from osler.core.settings.labels import Labels
from osler.data.labels.choose import unjudged

if TYPE_CHECKING:
    from osler.data.labels.audit import LabelAudit

RULE = "label-noise"
_WIDEST = 20  # classes up to which the whole matrix is a table; beyond, its largest entries are
_PAIRS = 50
_BINS = 20


def report(audit: LabelAudit, settings: Labels) -> Report:
    """Finding `label-noise` where noise by class was shown; else why it was not judged. Tables and histogram always."""
    labelled = int((audit.given >= 0).sum())
    out = Report(
        subject={
            "kind": "check",
            "check": "labels",
            "rows": len(audit.given),
            "classes": len(audit.names),
            "labelled": labelled,
        }
    )
    fits, why = audit.fits
    found = audit.ranked()
    if fits:
        out.findings.append(_finding(audit, settings, labelled, len(found.index)))
    elif audit.choice.dependence.low > settings.noise_floor or unjudged(audit.choice.dependence):
        out.not_checked.append(
            NotChecked(RULE, f"{why}. No label is called wrong; the most suspicious ones are listed")
        )
    out.tables.append(_estimators(audit))
    out.tables.append(_matrix(audit, settings))
    if settings.listed:
        out.tables.append(_suspicious(audit, settings.listed))
    out.series.append(_histogram(audit))
    for note in audit.notes:
        if "out of fold" in note or "trained on these rows" in note:
            out.not_checked.append(NotChecked("predictions out of fold", note, is_rule=False))
        else:
            out.notes.append(note)
    missing = len(audit.given) - labelled
    if missing:
        out.notes.append(f"{missing:,} rows have no label and were passed over")
    if not _rates_agree(audit, settings):
        out.notes.append(
            "the estimators' noise rates differ by more than a factor "
            f"{settings.rates_apart:g}: where they do, the noise does not depend on the class alone"
        )
    return out


def _finding(audit: LabelAudit, settings: Labels, labelled: int, wrong: int) -> Finding:
    low, high = audit.noise_rate_interval
    pairs = _largest(audit, 3)
    named = "; ".join(f"{audit.names[k]} given as {audit.names[j]} {audit.noise_matrix[k, j]:.0%}" for k, j in pairs)
    d = audit.choice.dependence
    sure = (
        Confidence.DEFINITE
        if d.low > 2 * settings.noise_floor and _rates_agree(audit, settings)
        else Confidence.PROBABLE
    )
    return Finding(
        rule=RULE,
        severity=Severity.WARNING,
        confidence=sure,
        message=(
            f"about {audit.noise_rate:.1%} ({low:.1%}–{high:.1%}) of {labelled:,} labels are wrong, by out-of-fold "
            f"predictions; most often {named}"
        ),
        evidence={
            "noise_rate": audit.noise_rate,
            "noise_rate_low": low,
            "noise_rate_high": high,
            "labels": labelled,
            "suspicious": wrong,
            "contradicted_confident": d.share,
            "dependence_auroc": d.auroc,
            "likelihood_gain": audit.choice.gain,
            "estimator": audit.chosen,
            "agreement": audit.agreement,
        },
        fix=(
            f"Train on the soft targets (`audit.soft_targets()`), or look at the {min(wrong, settings.listed)} most "
            f"suspicious of {wrong:,} positions first and correct those (`audit.ranked()`, `audit.write_cleaned(path)`). "
            "Relabel at most once: a model trained on its own corrections confirms its errors in the next round."
        ),
        touches=frozenset({"labels"}),
    )


def _rates_agree(audit: LabelAudit, settings: Labels) -> bool:
    rates = [max(1e-3, fit.noise_rate) for name, fit in audit.estimates.items() if name != "argmax"]
    return max(rates) <= settings.rates_apart * min(rates) or max(rates) <= settings.noise_floor


def _largest(audit: LabelAudit, n: int) -> list[tuple[int, int]]:
    """The off-diagonal entries that make the most wrong labels."""
    best = audit.estimates[audit.choice.best]
    weight = audit.noise_matrix * best.prior[:, None]
    np.fill_diagonal(weight, -1)
    order = np.argsort(-weight, axis=None, kind="stable")[:n]
    return [(int(i) // len(weight), int(i) % len(weight)) for i in order]


def _estimators(audit: LabelAudit) -> Table:
    rows: list[list[str | int | float | bool | None]] = []
    for name, fit in audit.estimates.items():
        rate = round(fit.noise_rate, 4)
        held = None if fit.likelihood is None else round(-fit.likelihood, 4)
        rows.append([name, rate, held, name == audit.chosen])
    return Table(
        "label noise by estimator",
        ["estimator", "noise rate", "held-out loss", "chosen"],
        rows,
        "held-out loss: nats per given label that was not looked at, lower is better; argmax counts every model error as noise. "
        + audit.fits[1],
    )


def _matrix(audit: LabelAudit, settings: Labels) -> Table:
    low, high = audit.intervals
    t, names = audit.noise_matrix, audit.names
    note = (
        f"share of each true class that was given each label ({audit.choice.best}), with {settings.coverage:.0%} intervals "
        "of chance and of the estimator's own bias"
    )

    def cell(k: int, j: int) -> str:
        return f"{t[k, j]:.3f} ({low[k, j]:.3f}–{high[k, j]:.3f})"

    if len(names) <= _WIDEST:
        rows: list[list[str | int | float | bool | None]] = [
            [names[k], *[cell(k, j) for j in range(len(names))]] for k in range(len(names))
        ]
        return Table("noise matrix", ["true \\ given", *names], rows, note)
    pairs = _largest(audit, _PAIRS)
    rows = [
        [names[k], names[j], round(float(t[k, j]), 4), round(float(low[k, j]), 4), round(float(high[k, j]), 4)]
        for k, j in pairs
    ]
    return Table("noise matrix", ["true", "given", "share", "low", "high"], rows, note + "; its largest entries")


def _suspicious(audit: LabelAudit, n: int) -> Table:
    found = audit.ranked(n)
    rows: list[list[str | int | float | bool | None]] = [
        [int(i), audit.names[g], audit.names[s], round(float(p), 4)]
        for i, g, s, p in zip(found.index, found.given, found.suggested, found.probability, strict=True)
    ]
    note = "0-based positions, most suspicious first"
    if not audit.noisy:
        note += "; no label noise was shown, so most of these may be the model's errors"
    return Table("most suspicious labels", ["index", "given", "suggested", "probability wrong"], rows, note)


def _histogram(audit: LabelAudit) -> Series:
    edges = np.linspace(0, 1, _BINS + 1)
    there = audit.given >= 0
    counts, _ = np.histogram(audit.suspicion[there], edges)
    values: list[list[float | None]] = [[float(v) for v in counts / max(1, counts.sum())]]
    return Series(
        "probability that the given label is wrong",
        "histogram",
        [],
        values,
        rows=["labels"],
        edges=[float(e) for e in edges],
    )
