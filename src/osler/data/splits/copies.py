"""From equal and near rows to findings: are they copies, how many, how bad."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import NotChecked
from osler.core.settings.splits import Splits
from osler.data.splits.columns import Rows
from osler.data.splits.exact import Matches
from osler.data.splits.images import ImageMatches
from osler.data.splits.near import NearMatches
from osler.data.splits.text import TextMatches, recall
from osler.data.splits.wording import by_share, count, share

_DROP = (
    "Remove these rows from one side, and remove copies before you split the next time (drop_duplicates on the features, "
    "or split by a group that keeps copies together)."
)


@dataclass(frozen=True, slots=True)
class Excess:
    """Equal rows across the split against equal rows within training.

    Attributes:
        expected: evaluation rows that would have an equal training row if both sides were drawn alike.
        beyond: whether there are significantly more, by more than `unexplained` of them.
    """

    expected: float
    beyond: bool


def excess(matches: Matches, train_rows: int, eval_rows: int, settings: Splits) -> Excess:
    """If both sides were drawn alike, a row of evaluation would have a twin in training as often as a row of training has.

    The standard error counts both sides' sampling: with p the share of training rows that repeat,
    n·√(p(1−p)·(1/n + 1/m)) for n rows of evaluation and m of training, p raised by two pseudo-counts.
    """
    p = (matches.train_repeats * train_rows + 1) / (train_rows + 2)
    expected = eval_rows * matches.train_repeats
    error = eval_rows * math.sqrt(p * (1 - p) * (1 / max(eval_rows, 1) + 1 / max(train_rows, 1)))
    surplus = matches.rows.size - expected
    beyond = surplus > settings.excess_sigmas * error and surplus >= settings.unexplained * matches.rows.size
    return Excess(expected, beyond)


def judge_equal(
    matches: Matches, more: Excess, natural: float | None, train_rows: int, eval_rows: int, settings: Splits
) -> tuple[Finding | None, NotChecked | None]:
    """A finding where equal rows are copies; what stays open where they may be equal by nature.

    Args:
        matches: equal rows.
        more: against the repeats within training.
        natural: share of them that chance explains, None where `more` settles it.
        train_rows, eval_rows: rows of both sides.
        settings: thresholds.
    """
    found = matches.rows.size
    if not found:
        return None, None
    resting = matches.distinct <= settings.few_states and found >= 10 * matches.distinct
    explained = 0.0 if more.beyond else (1.0 if natural is None else natural)
    copies = round(found * (1 - explained))
    if not more.beyond and (resting or 1 - explained < settings.unexplained or not copies):
        why = (
            f"they are {count(matches.distinct, 'value')} over and over, as of a resting state"
            if resting
            else "their columns take so few values that rows are equal by nature"
        )
        return None, NotChecked(
            "split-duplicate-rows",
            f"{count(found, 'evaluation row')} ({share(found, eval_rows)}) {_is(found)} equal to training rows, and {why}: "
            f"{share(matches.train_repeats, 1)} of the training rows repeat within training as well; whether any were copied "
            "cannot be told from these columns",
        )
    whole = copies >= settings.contained * eval_rows and eval_rows > 1
    severity = Severity.ERROR if whole else by_share(copies, eval_rows, settings)
    about = "" if explained < 0.01 else f"about {copies:,} of them by more than chance; "
    evidence: dict[str, object] = {
        "kind": "exact",
        "eval_rows_equal": int(found),
        "eval_rows": eval_rows,
        "train_rows": train_rows,
        "share": round(found / eval_rows, 6),
        "different_rows": matches.distinct,
        "expected_by_repeats_in_training": round(more.expected, 2),
        "train_rows_repeating": round(matches.train_repeats, 6),
        "explained_by_chance": round(explained, 4),
        "compared_value_by_value": matches.verified,
        "hash_collisions": matches.collisions,
        "columns_compared": len(matches.columns),
        "rows": _ints(matches.rows, settings),
        "train_rows_first": _ints(matches.partners, settings),
    }
    first = f"first at row {int(matches.rows[0])}, which is training row {int(matches.partners[0])}"
    if whole:
        return (
            Finding(
                "eval-on-training-data",
                severity,
                Confidence.DEFINITE,
                f"{found:,} of {eval_rows:,} evaluation rows ({share(found, eval_rows)}) are training rows: evaluation "
                f"measures what the model remembers; {first}.",
                evidence=evidence,
                fix="Evaluate on rows that training never saw: check which file, loader or index list evaluation reads.",
            ),
            None,
        )
    return (
        Finding(
            "split-duplicate-rows",
            severity,
            Confidence.DEFINITE if more.beyond else Confidence.PROBABLE,
            f"{found:,} of {eval_rows:,} evaluation rows ({share(found, eval_rows)}) {_is(found)} also "
            f"{'a training row' if found == 1 else 'training rows'}, {about}{first}.",
            evidence=evidence,
            fix=_DROP,
        ),
        None,
    )


def judge_near(
    near: NearMatches, equal: int, eval_rows: int, settings: Splits
) -> tuple[Finding | None, NotChecked | None]:
    """A finding where near rows are closer than these data usually are."""
    missed: list[str] = []
    if near.examined < eval_rows - equal:
        missed.append(f"only the first {near.examined:,} evaluation rows were searched")
    foreseen = near.plan.recall(settings.noise)
    if foreseen < 0.99:
        missed.append(
            f"with {count(len(near.plan.numbers), 'column')} of many values about {share(foreseen, 1)} of the pairs with noise "
            f"{settings.noise:g} can be found"
        )
    if near.close.size and not near.count:
        missed.append(
            f"{count(near.close.size, 'evaluation row')} lie{'s' if near.close.size == 1 else ''} within {settings.near_distance:g} "
            "spreads of a training row, but rows of these data usually lie as close"
        )
    open_ = NotChecked("split-duplicate-rows", "near copies: " + "; ".join(missed)) if missed else None
    if not near.count:
        return None, open_
    middle = float(np.median(near.distances))
    about = "" if near.judged >= near.close.size else "About "
    return (
        Finding(
            "split-duplicate-rows",
            by_share(near.count, eval_rows, settings),
            Confidence.PROBABLE,
            f"{about}{near.count:,} of {eval_rows:,} evaluation rows ({share(near.count, eval_rows)}) "
            f"{'is a training row' if near.count == 1 else 'are training rows'} with a little noise (a median of {middle:.2g} "
            f"spreads per column), far closer than rows of these data usually are; first at row {int(near.rows[0])}, next to "
            f"training row {int(near.partners[0])}.",
            evidence={
                "kind": "near",
                "eval_rows_near": near.count,
                "eval_rows": eval_rows,
                "share": round(near.count / eval_rows, 6),
                "within_distance": int(near.close.size),
                "judged": near.judged,
                "median_distance": middle,
                "recall_expected": round(foreseen, 6),
                "cell_width": near.plan.width,
                "bands": [len(band.columns) for band in near.plan.bands],
                "rows": _ints(near.rows, settings),
                "train_rows_first": _ints(near.partners, settings),
            },
            fix=_DROP.replace("drop_duplicates on the features", "round the features before drop_duplicates"),
        ),
        open_,
    )


def judge_text(found: TextMatches, eval_rows: int, settings: Splits) -> tuple[Finding | None, list[NotChecked]]:
    """A finding for near texts of a column."""
    missed: list[NotChecked] = []
    if found.short:
        missed.append(
            NotChecked(
                "split-duplicate-rows",
                f"near copies in {found.column}: {count(found.short, 'evaluation text')} shorter than "
                f"{settings.text_shortest} shingles",
            )
        )
    if found.templates:
        missed.append(
            NotChecked(
                "split-duplicate-rows",
                f"near copies in {found.column}: {count(found.templates, 'evaluation text')} {_is(found.templates)} like more "
                f"than {settings.text_alike} different training texts, as forms and boilerplate are",
            )
        )
    n = found.rows.size
    if not n:
        return None, missed
    return (
        Finding(
            "split-duplicate-rows",
            by_share(n, eval_rows, settings),
            Confidence.PROBABLE,
            f"{n:,} of {eval_rows:,} evaluation texts ({share(n, eval_rows)}) in {found.column} {_is(n)} nearly "
            f"{'a training text' if n == 1 else 'training texts'} (median Jaccard similarity "
            f"{float(np.median(found.similarities)):.2f}), first at row {int(found.rows[0])}, which is like training row "
            f"{int(found.partners[0])}.",
            evidence={
                "kind": "text",
                "eval_rows_near": int(n),
                "eval_rows": eval_rows,
                "share": round(n / eval_rows, 6),
                "median_similarity": float(np.median(found.similarities)),
                "recall_at_threshold": round(recall(settings.text_jaccard, settings.text_bands, settings.text_rows), 6),
                "rows": _ints(found.rows, settings),
                "train_rows_first": _ints(found.partners, settings),
            },
            fix="Remove near copies before the split (MinHash, or this check), or put texts of one source on one side.",
            touches=frozenset({f"column:{found.column}"}),
        ),
        missed,
    )


def judge_images(
    found: ImageMatches, eval_images: int, unreadable: int, column: str | None, settings: Splits
) -> tuple[Finding | None, list[NotChecked]]:
    """A finding for near images."""
    missed: list[NotChecked] = []
    for n, why in ((found.flat - unreadable, "without any contrast"), (unreadable, "that cannot be read")):
        if n > 0:
            missed.append(NotChecked("split-duplicate-rows", f"near copies: {count(n, 'image')} {why}"))
    if not found.count:
        return None, missed
    whole = found.count >= settings.contained * eval_images and eval_images > 1
    return (
        Finding(
            "eval-on-training-data" if whole else "split-duplicate-rows",
            Severity.ERROR if whole else by_share(found.count, eval_images, settings),
            Confidence.PROBABLE,
            f"{found.count:,} of {eval_images:,} evaluation images ({share(found.count, eval_images)}) "
            f"{'shows a picture' if found.count == 1 else 'show pictures'} that training has as well "
            f"({found.exact:,} unchanged), first at image {int(found.rows[0])}, which is training image "
            f"{int(found.partners[0])}.",
            evidence={
                "kind": "image",
                "eval_images_near": found.count,
                "eval_images": eval_images,
                "share": round(found.count / eval_images, 6),
                "unchanged": found.exact,
                "least_correlation": round(float(found.correlations.min()), 4),
                "rows": _ints(found.rows, settings),
                "train_rows_first": _ints(found.partners, settings),
            },
            fix="Put every version of a picture on one side: remove near copies, or split by the scene, patient or video "
            "before frames are drawn and images augmented.",
            touches=frozenset({f"column:{column}"}) if column else frozenset(),
        ),
        missed,
    )


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _ints(rows: Rows, settings: Splits) -> list[int]:
    return [int(r) for r in rows[: settings.positions]]
