"""From what features say of the label to findings."""

from __future__ import annotations

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Table
from osler.core.settings.splits import Splits
from osler.data.splits.leak import Knowledge, Late, Suspect
from osler.data.splits.wording import by_share, count, share

_COPIES = {
    "values": "is the label itself",
    "classes": "has one value for each class of the label, and no other",
    "scale": "is the label on another scale",
}


def judge_leaks(known: Knowledge, label: str, settings: Splits) -> tuple[list[Finding], list[NotChecked], Table]:
    """Findings for suspects; the skills of all features as a table.

    A strong feature may be honest: a physical law, an easy class. Only a copy of the label by value is an error; a
    perfect feature without equal among the others, or one that is missing exactly where the class says, is a warning;
    the rest is possible, and hidden unless asked for.
    """
    findings: list[Finding] = []
    perfect = [s for s in known.suspects if s.alone >= settings.leak_skill]
    for suspect in known.suspects:
        finding = _suspect(suspect, known, label, settings)
        if finding is not None:
            findings.append(finding)
    missed: list[NotChecked] = []
    if perfect and not findings:
        missed.append(
            NotChecked(
                "target-leak",
                f"{count(len(perfect), 'feature')} predict{'s' if len(perfect) == 1 else ''} the label nearly without error, and "
                "so do the others without it: the label is easy, or several features leak it together",
            )
        )
    if known.left_out:
        missed.append(
            NotChecked("target-leak", f"{count(len(known.left_out), 'feature')} that do not vary or rank low")
        )
    if known.order is not None and known.order >= settings.leak_skill:
        findings.append(
            Finding(
                "target-leak",
                Severity.INFO,
                Confidence.PROBABLE,
                f"The rows of training are sorted by {label}: the number of a row predicts it with skill {known.order:.2f}.",
                Where(column=label),
                {"skill_of_row_number": round(known.order, 4), "rows": known.rows},
                "Shuffle before you split by position or train in batches, and keep row numbers out of the features.",
                touches=frozenset({f"column:{label}"}),
            )
        )
    order = sorted(known.alone, key=lambda n: -known.alone[n])
    rest = {s.column: s.rest for s in known.suspects}
    rows: list[list[str | int | float | bool | None]] = [
        [name, round(known.alone[name], 4), None if rest.get(name) is None else round(rest[name] or 0.0, 4)]
        for name in order[:20]
    ]
    note = f"Skill out of fold on {known.rows:,} training rows: 0 is chance, 1 no error" + (
        "." if known.whole is None else f"; all features together reach {known.whole:.3f}."
    )
    return (
        findings,
        missed,
        Table("features that know the label", ["column", "alone", "all others together"], rows, note),
    )


def _suspect(suspect: Suspect, known: Knowledge, label: str, settings: Splits) -> Finding | None:
    rest = 0.0 if suspect.rest is None else suspect.rest
    margin = suspect.alone - rest
    alone = suspect.rest is None
    severity, confidence, what = Severity.WARNING, Confidence.POSSIBLE, ""
    if suspect.copy == "values":
        severity, confidence, what = Severity.ERROR, Confidence.PROBABLE, _COPIES["values"]
    elif suspect.copy and (margin >= settings.leak_margin or alone):
        confidence, what = Confidence.PROBABLE if not alone else Confidence.POSSIBLE, _COPIES[suspect.copy]
    elif margin < settings.leak_margin or alone:
        return None
    elif suspect.by_absence:
        confidence, what = Confidence.PROBABLE, "is missing for one class and present for the others"
    elif suspect.identifier:
        confidence, what = Confidence.PROBABLE, "numbers the rows, and the numbers follow the label"
    elif known.task == "classification" and suspect.alone >= settings.leak_certain:
        confidence, what = Confidence.PROBABLE, "predicts the label without error"
    else:
        what = "predicts the label almost without error"
    return Finding(
        "target-leak",
        severity,
        confidence,
        f"{suspect.column} {what}: alone it reaches skill {suspect.alone:.3f}"
        + ("." if alone else f", all other features together {rest:.3f}."),
        Where(column=suspect.column),
        {
            "skill_alone": round(suspect.alone, 5),
            "skill_of_others": None if suspect.rest is None else round(suspect.rest, 5),
            "skill_of_all": None if known.whole is None else round(known.whole, 5),
            "task": known.task,
            "rows": known.rows,
            "copy_of_label": suspect.copy or None,
            "missing_tells_class": suspect.by_absence,
            "numbers_the_rows": suspect.identifier,
        },
        f"Ask when {suspect.column} is known: where it is written with or after {label}, leave it out of the features; where "
        "it is known before, keep it and ignore this finding.",
        touches=frozenset({f"column:{suspect.column}", f"column:{label}"}),
    )


def judge_late(late: Late, label_time: str, settings: Splits) -> Finding | None:
    """A finding where features change after the label's time."""
    if not late.late:
        return None
    names = ", ".join(late.features)
    return Finding(
        "target-leak",
        by_share(late.late, late.rows, settings),
        Confidence.DEFINITE,
        f"{names} {'was' if len(late.features) == 1 else 'were'} written after the label in {late.late:,} of {late.rows:,} "
        f"training rows ({share(late.late, late.rows)}): {late.column} is later than {label_time}, first at row "
        f"{late.first[0]}.",
        Where(column=late.features[0]),
        {
            "late_rows": late.late,
            "rows_compared": late.rows,
            "share": round(late.late / late.rows, 6),
            "rows": late.first,
        },
        "Take the value that was known at the label's time (a point-in-time join), not the latest one.",
        touches=frozenset(f"column:{n}" for n in (*late.features, late.column)),
    )
