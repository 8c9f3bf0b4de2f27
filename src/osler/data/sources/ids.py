"""How often ids occur in a source, and which of them two sources share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.data.sources.keys import Codes, Mask

Rows = np.ndarray[Any, np.dtype[np.intp]]
SHOWN = 5


@dataclass(slots=True)
class Tally:
    """The distinct ids of a source.

    Attributes:
        ids: int64 [distinct], ascending codes.
        first: [distinct], row in which each occurs first.
        counts: [distinct], how often.
        order: [rows with an id], rows sorted by id and, within one, by position.
        starts: [distinct], where each id begins in `order`.
        rows: rows of the source. nulls: rows without an id.
    """

    ids: Codes
    first: Rows
    counts: Rows
    order: Rows
    starts: Rows
    rows: int
    nulls: int

    @property
    def repeated(self) -> float:
        """Share of the distinct ids that occur more than once."""
        return float(np.count_nonzero(self.counts > 1) / len(self.ids)) if len(self.ids) else 0.0

    @property
    def surplus(self) -> int:
        """Rows beyond the first of each id."""
        return len(self.order) - len(self.ids)


def tally(codes: Codes, valid: Mask) -> Tally:
    """Count the ids of a source: one stable sort, none where the ids come sorted."""
    rows = len(codes)
    whole = bool(valid.all())
    present = np.arange(rows) if whole else np.flatnonzero(valid)
    known = codes if whole else codes[present]
    if len(known) > 1 and np.any(known[1:] < known[:-1]):
        by_id = np.argsort(known, kind="stable")
        present, known = present[by_id], known[by_id]
    fresh = np.ones(len(known), bool)
    np.not_equal(known[1:], known[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.append(starts, len(known)))
    return Tally(known[starts], present[starts], counts, present, starts, rows, rows - len(known))


def lookup(needles: Codes, ids: Codes) -> tuple[Rows, Mask]:
    """Where ascending `needles` stand in ascending distinct `ids`, and which of them do at all."""
    if not len(ids):
        return np.zeros(len(needles), np.intp), np.zeros(len(needles), bool)
    at = np.minimum(np.searchsorted(ids, needles), len(ids) - 1)
    return at, ids[at] == needles


@dataclass(slots=True)
class Overlap:
    """The ids of two sources side by side.

    Attributes:
        left, right: [shared], positions in the tallies' `ids` of the ids that both have.
        missing: positions in the left tally of ids that the right one lacks.
        extra: positions in the right tally of ids that the left one lacks.
    """

    left: Rows
    right: Rows
    missing: Rows
    extra: Rows


def overlap(left: Tally, right: Tally) -> Overlap:
    """Which ids two sources share."""
    at, found = lookup(left.ids, right.ids)
    taken = np.zeros(len(right.ids), bool)
    taken[at[found]] = True
    return Overlap(np.flatnonzero(found), at[found], np.flatnonzero(~found), np.flatnonzero(~taken))


def positions(rows: Rows) -> list[int]:
    """The first few rows of a set, ascending, for evidence."""
    if len(rows) > SHOWN:
        rows = np.partition(rows, SHOWN - 1)[:SHOWN]
    return [int(row) for row in np.sort(rows)]


def repeats(counted: Tally, times: np.ndarray[Any, np.dtype[np.int64]] | None = None) -> tuple[Rows, Rows]:
    """Every occurrence of an id after its first: its row, and the row of the occurrence before it.

    Args:
        times: [rows], by which the occurrences of one id are put in order; None keeps the order of the rows.
    """
    later = np.ones(len(counted.order), bool)
    later[counted.starts] = False
    order = counted.order
    if times is not None:
        order = order[np.lexsort((times[order], np.cumsum(~later)))]
    at = np.flatnonzero(later)
    return order[at], order[at - 1]
