"""Entities (patients, users, devices) that are on both sides of a split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.progress import Progress
from osler.core.settings.splits import Splits
from osler.data.need import DataError
from osler.data.splits.columns import Rows
from osler.data.splits.hashes import codes_of, mix
from osler.data.splits.wording import by_share, count, listed_rows, share
from osler.data.tables import Kind, Source


@dataclass(slots=True)
class Shared:
    """Groups of one column on both sides.

    Attributes:
        column: its name.
        train_groups, eval_groups: different groups on each side.
        both: how many are on both.
        rows: evaluation rows whose group is in training, ascending.
        eval_rows: evaluation rows that have a group.
        train_rows: training rows whose group is in evaluation.
        without: rows of either side without a group.
    """

    column: str
    train_groups: int
    eval_groups: int
    both: int
    rows: Rows
    eval_rows: int
    train_rows: int
    without: int


def shared_groups(train: Source, eval_: Source, column: str, progress: Progress) -> Shared:
    """Compare the groups of both sides by 64-bit codes (one to one with the value for numbers, hashes for text).

    Raises:
        DataError: the column is missing, or text on one side and numbers on the other.
    """
    kinds = [side.column(column).kind for side in (train, eval_)]
    text = [kind is Kind.CATEGORY for kind in kinds]
    if text[0] != text[1] and Kind.NULL not in kinds:
        raise DataError(
            f"group column {column!r} is {kinds[0].value} in {train.name} and {kinds[1].value} in {eval_.name}: "
            "give both the same type, or no group can be found on both sides"
        )
    t, t_missing = _codes(train, column, progress)
    e, e_missing = _codes(eval_, column, progress)
    t_unique, e_unique = np.unique(t[~t_missing]), np.unique(e[~e_missing])
    both = np.intersect1d(t_unique, e_unique, assume_unique=True)
    hit = np.isin(e, both) & ~e_missing
    return Shared(
        column,
        t_unique.size,
        e_unique.size,
        both.size,
        np.flatnonzero(hit),
        int((~e_missing).sum()),
        int((np.isin(t, both) & ~t_missing).sum()),
        int(t_missing.sum() + e_missing.sum()),
    )


def judge_groups(found: Shared, split_by_time: bool | None, settings: Splits) -> Finding | None:
    """A finding where groups are on both sides.

    Args:
        found: the groups.
        split_by_time: whether evaluation comes after training: there groups recur by design. None: that cannot be said.
        settings: shares.
    """
    if not found.both:
        return None
    n, total = int(found.rows.size), found.eval_rows
    by_time = split_by_time is not False
    recur = " Where a split is by time groups recur: it matters only if the model is for groups it has not seen."
    return Finding(
        "split-group-overlap",
        Severity.INFO if by_time else by_share(n, total, settings),
        Confidence.DEFINITE,
        f"{found.both:,} of {count(found.eval_groups, 'group')} of evaluation in {found.column} "
        f"{'is' if found.both == 1 else 'are'} in training too, with {n:,} of {total:,} evaluation rows "
        f"({share(n, total)}), first at row {int(found.rows[0])}.{recur if by_time else ''}",
        Where(column=found.column),
        {
            "groups_on_both_sides": found.both,
            "train_groups": found.train_groups,
            "eval_groups": found.eval_groups,
            "eval_rows_in_shared_groups": n,
            "train_rows_in_shared_groups": found.train_rows,
            "share": round(n / total, 6),
            "rows": listed_rows(found.rows, settings),
        },
        f"Split by {found.column}: sklearn's GroupShuffleSplit or GroupKFold, or osler.TimeSplit with groups.",
        touches=frozenset({f"column:{found.column}"}),
    )


def _codes(source: Source, column: str, progress: Progress) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    codes: list[npt.NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
    missing: list[npt.NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
    done = 0
    for batch in source.batches([column]):
        array = batch.column(0)
        values, classes = codes_of(array)
        nothing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        codes.append(mix(values + classes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)))
        missing.append(nothing)
        done += batch.num_rows
        progress("groups read", done, source.rows)
    return np.concatenate(codes), np.concatenate(missing)
