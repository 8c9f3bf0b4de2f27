"""From counted holes to findings and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import Table
from osler.core.settings.missing import Missing
from osler.data.missing.coded import Coded
from osler.data.missing.effect import Effect
from osler.data.missing.patterns import Tie
from osler.data.missing.sensitivity import Sensitivity
from osler.data.missing.validate import Choice

_RULE = "missing-sensitive"
_TABLE_ROWS = 200


@dataclass(slots=True)
class Feature:
    """What is known about one feature.

    Attributes:
        name: its column.
        holes: missing values.
        rows: rows of the table.
        sensitivity: its share of the total; 0 where that is not known.
        sensitive: it counts as one that the model leans on.
        before: share missing in the reference; None without one.
        rise_p: p-value of the share being no larger than in the reference.
        coded, coded_before: share of cells that hold a code for missing, now and in the reference.
        block, block_start: rows of a run that chance does not explain, and where it begins; 0 and -1 without one.
        tie: how missingness goes with the label.
        choice: the proposed imputation.
    """

    name: str
    holes: int
    rows: int
    sensitivity: float = 0.0
    sensitive: bool = False
    before: float | None = None
    rise_p: float = 1.0
    coded: float = 0.0
    coded_before: float = 0.0
    block: int = 0
    block_start: int = -1
    tie: Tie | None = None
    choice: Choice | None = None

    @property
    def share(self) -> float:
        """Share of the rows in which it is missing."""
        return self.holes / self.rows

    @property
    def effective(self) -> float:
        """The same with codes for missing counted."""
        return min(1.0, self.share + self.coded)


def findings(
    features: Sequence[Feature],
    suspects: Sequence[Coded],
    lean: Sensitivity | None,
    effect: Effect | None,
    compared: bool,
    rows: int,
    settings: Missing,
) -> list[Finding]:
    """The findings, the most exposed feature first."""
    out = []
    for feature in sorted(features, key=lambda f: (-f.effective * f.sensitivity, f.name)):
        if feature.sensitive and feature.share * feature.sensitivity >= settings.exposure:
            out.append(_holes(feature, lean, effect, len(features), settings))
        elif _tied(feature, len(features), settings):
            out.append(_tie(feature))
    for suspect in suspects:
        found = next(f for f in features if f.name == suspect.column)
        out.append(_code(suspect, found, lean, compared, rows, settings))
    return out


def _holes(feature: Feature, lean: Sensitivity | None, effect: Effect | None, width: int, settings: Missing) -> Finding:
    severity, confidence = Severity.INFO, Confidence.PROBABLE
    risen = False
    if feature.before is not None:
        exposure = (feature.share - feature.before) * feature.sensitivity
        risen = exposure >= settings.exposure and feature.rise_p < settings.level / width
        if risen:
            lost = feature.share >= settings.lost and feature.before < 0.5
            severity = Severity.ERROR if lost else Severity.WARNING
            confidence = Confidence.DEFINITE if lean is not None and lean.method != "model" else Confidence.PROBABLE
    elif effect is not None and effect.matters(settings):
        severity = Severity.WARNING
    evidence = _evidence(feature)
    message = f"{feature.name} is missing in {feature.share:.1%} of the rows"
    if feature.before is not None:
        message += f" (training: {feature.before:.1%})" if risen else f", as in training ({feature.before:.1%})"
    message += f", and {feature.sensitivity:.0%} of what the model leans on is this feature"
    if feature.block:
        last = feature.block_start + feature.block - 1
        message += f"; {feature.block} of them are the rows {feature.block_start} to {last} in one block"
    if _tied(feature, width, settings):
        message += "; where it is missing the label differs"
    if effect is not None:
        evidence |= {"loss_mean": effect.mean, "loss_proposed": effect.proposed, "loss_true": effect.true}
        if severity is Severity.WARNING and not risen:
            message += f"; filling in the mean costs {effect.gain:.3g} more {effect.unit} than reconstructing"
    return Finding(
        _RULE,
        severity,
        confidence,
        message + ".",
        Where(column=feature.name),
        evidence,
        _sentence(_fix(feature, risen, effect)),
        touches=frozenset({f"column:{feature.name}"}),
    )


def _fix(feature: Feature, risen: bool, effect: Effect | None) -> str:
    text = ""
    if risen or feature.block:
        text = f"Find out what stopped filling in {feature.name}"
        text += f" at row {feature.block_start}; " if feature.block else "; "
        text += "until then, "
    choice = feature.choice
    if choice is None or not choice.errors:
        return (
            text
            + "reconstruct it from the other columns (SensitivityImputer) and keep a column that says where it was missing."
        )
    plain = choice.errors.get("simple", float("nan"))
    keep = "If it is missing for reasons that the table does not show, no imputation mends it: keep a column that says where it was missing."
    if set(choice.weights) == {"simple"}:
        return (
            f"{text}keep a column that says where it was missing: the other columns tell nothing about {feature.name}."
        )
    if effect is not None and effect.gain <= 0:
        return (
            f"{text}filling in the mean will do: measured on the task, reconstructing from the other columns "
            f"({choice.label}, off by {choice.error:.2f} where the median is by {plain:.2f}) gains nothing over it. {keep}"
        )
    return (
        f"{text}reconstruct it from the other columns with osler's SensitivityImputer ({choice.label}): on hidden cells it is off "
        f"by {choice.error:.2f} (median or mode: {plain:.2f}), in spreads for numbers, as share of wrong ones for categories. "
        f"{keep}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tied(feature: Feature, width: int, settings: Missing) -> bool:
    tie = feature.tie
    return tie is not None and tie.p < settings.level / width and tie.strength >= settings.label_tie


def _tie(feature: Feature) -> Finding:
    assert feature.tie is not None
    return Finding(
        _RULE,
        Severity.INFO,
        Confidence.PROBABLE,
        f"Whether {feature.name} is missing ({feature.share:.1%} of the rows) goes with the label "
        f"(strength {feature.tie.strength:.2f} of 1): its values are not missing at random.",
        Where(column=feature.name),
        _evidence(feature),
        f"Give the model a column that says where {feature.name} is missing, and make sure that it is known at prediction time.",
        touches=frozenset({f"column:{feature.name}"}),
    )


def _code(
    suspect: Coded, feature: Feature, lean: Sensitivity | None, compared: bool, rows: int, settings: Missing
) -> Finding:
    before = feature.coded_before if compared else 0.0
    new = suspect.share - before
    serious = suspect.certain and feature.sensitive and new * feature.sensitivity >= settings.exposure
    what = f"the number {suspect.code}" if suspect.code[-1:].isdigit() else suspect.code
    if what == suspect.code and what != "an empty text":
        what = f'"{suspect.code}"'
    message = f"{suspect.share:.1%} of {suspect.column} is {what}, which looks like a code for missing"
    if suspect.text_for_numbers:
        message += ": the rest reads as numbers, so the column is text only because of it"
    if feature.sensitive:
        message += f", and {feature.sensitivity:.0%} of what the model leans on is this feature"
    return Finding(
        _RULE,
        Severity.WARNING if serious else Severity.INFO,
        Confidence.PROBABLE if suspect.certain else Confidence.POSSIBLE,
        message + ".",
        Where(column=suspect.column),
        {
            "coded_share": suspect.share,
            "coded_share_reference": before if compared else None,
            "sensitivity": feature.sensitivity if lean is not None else None,
            "rows": rows,
        },
        f"If it stands for missing, read it as missing (na_values in pandas, null_values in polars and pyarrow) in training and in "
        f"serving alike; osler changed nothing. If {what} is meant, ignore this finding.",
        touches=frozenset({f"column:{suspect.column}"}),
    )


def _evidence(feature: Feature) -> dict[str, object]:
    out: dict[str, object] = {
        "missing_share": feature.share,
        "reference_share": feature.before,
        "sensitivity": feature.sensitivity,
        "exposure": feature.share * feature.sensitivity,
    }
    if feature.before is not None:
        out["p_no_rise"] = feature.rise_p
    if feature.block:
        out |= {"block_rows": feature.block, "block_start": feature.block_start}
    if feature.tie is not None:
        out |= {"label_tie": feature.tie.strength, "label_tie_p": feature.tie.p}
    if feature.choice is not None and feature.choice.errors:
        out |= {
            "imputation": feature.choice.label,
            "hidden_cells": feature.choice.cells,
            "error": feature.choice.error,
            "error_simple": feature.choice.errors.get("simple"),
        }
    return out


def tables(features: Sequence[Feature], lean: Sensitivity | None, effect: Effect | None, rows: int) -> list[Table]:
    """The features that have missing values or matter, and the effect on the task."""
    shown = [f for f in features if f.holes or f.coded or f.sensitive]
    shown.sort(key=lambda f: (-f.effective * f.sensitivity, -f.effective, -f.sensitivity, f.name))
    out = []
    if shown:
        out.append(
            Table(
                "features",
                [
                    "feature",
                    "missing",
                    "in training",
                    "coded",
                    "sensitivity",
                    "longest block",
                    "imputation",
                    "error",
                    "median's error",
                    "tie to label",
                ],
                [_row(f, lean) for f in shown[:_TABLE_ROWS]],
                note=(
                    f"Shares of {rows} rows. Errors are measured on hidden cells: in standard deviations for numbers, share of wrong "
                    "ones for categories; they hold for values that are missing at random."
                    + (f" The first {_TABLE_ROWS} of {len(shown)}." if len(shown) > _TABLE_ROWS else "")
                ),
            )
        )
    if effect is not None:
        out.append(
            Table(
                "effect",
                ["filled in with", "loss", "over the true values"],
                [
                    ["true values", effect.true, 0.0],
                    ["mean or mode", effect.mean, effect.mean - effect.true],
                    ["reconstruction", effect.proposed, effect.proposed - effect.true],
                ],
                note=(
                    f"{effect.unit.capitalize()} on {effect.rows} held-out rows with cells hidden; the reconstruction gains "
                    f"{effect.gain:.3g} ± {effect.error:.2g} (standard error) over the mean."
                ),
            )
        )
    return out


def _row(feature: Feature, lean: Sensitivity | None) -> list[str | int | float | bool | None]:
    choice = feature.choice if feature.choice is not None and feature.choice.errors else None
    return [
        feature.name,
        feature.share,
        feature.before,
        feature.coded or None,
        feature.sensitivity if lean is not None else None,
        feature.block or None,
        choice.label if choice else None,
        choice.error if choice else None,
        choice.errors.get("simple") if choice else None,
        feature.tie.strength if feature.tie is not None else None,
    ]
