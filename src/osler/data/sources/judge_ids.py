"""Ids that one source has and the other lacks, ids in another form, duplicates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Severity
from osler.data.sources.durations import show
from osler.data.sources.ids import Rows, Tally, positions, repeats
from osler.data.sources.keys import Form, find_forms, row_hashes
from osler.data.sources.pair import Pair
from osler.data.sources.read import Stream
from osler.data.tables import Kind

_HASHED_COLUMNS = 32


def judge_ids(pair: Pair) -> None:
    """Missing and extra ids, with a change of form as the cause where there is one."""
    if pair.tallies is None or pair.shared is None or pair.left.keys is None or pair.right.keys is None:
        return
    ours, theirs = pair.tallies
    for counted, stream in ((ours, pair.left), (theirs, pair.right)):
        if not len(counted.ids):
            pair.skip("ids", f"{stream.name} has no row with an id")
            return
    forms = _forms(pair)
    if forms:
        _report_forms(pair, forms)
    elif not _same_type(pair):
        return
    rescued = forms[0].rescued if forms else 0
    left_row, right_row = _within(pair, pair.shared.missing, left=True), _within(pair, pair.shared.extra, left=False)
    missing, extra = max(0, len(left_row) - rescued), max(0, len(right_row) - rescued)
    settings, shape = pair.settings, pair.shape
    lacks_left, lacks_right = missing / len(ours.ids), extra / len(theirs.ids)
    if missing and not forms and _beyond(lacks_left, settings.missing, len(ours.ids), settings.interval_z):
        # an entity without events is ordinary; an event without its entity is not
        severity = Severity.INFO if shape == "left" else Severity.WARNING
        _lost(pair, pair.left, pair.right, left_row, lacks_left, ours, "missing", severity)
    if extra and not forms and _beyond(lacks_right, settings.extra, len(theirs.ids), settings.interval_z):
        # rows of the right source that a left join never asks for are no loss, unless the left one has a hole there
        contained = lacks_left <= settings.missing and shape != "left" and _block(pair.right, right_row) is None
        severity = Severity.INFO if contained or shape == "right" else Severity.WARNING
        _lost(pair, pair.right, pair.left, right_row, lacks_right, theirs, "extra", severity)


def _beyond(share: float, floor: float, count: int, z: float) -> bool:
    """Whether a share lies above the floor by more than chance makes of so few ids (normal approximation)."""
    return share > floor + z * math.sqrt(floor * (1 - floor) / count)


def judge_duplicates(pair: Pair, stream: Stream, counted: Tally) -> Rows:
    """Ids that stand twice in a source where each should name one row; the rows that are copies."""
    if stream.keys is None or not counted.surplus:
        return np.zeros(0, np.intp)
    series = counted.repeated > pair.settings.duplicate
    if series and stream.clock is None:
        # two equal rows of one customer may be two purchases
        return np.zeros(0, np.intp)
    later, before = repeats(counted, stream.clock.ns if series and stream.clock else None)
    alike, sure = _copies(pair, stream, later, before, series)
    copies: Rows = later[alike]
    if not len(copies):
        return copies
    share = len(copies) / stream.rows
    if series:
        what = "the same id, time and content as an earlier row"
    else:
        what = "an id that an earlier row has" + (" at about the same time" if stream.clock else "")
    warns = not series or share > pair.settings.duplicate / 10
    pair.report(
        "duplicate",
        Severity.WARNING if warns else Severity.INFO,
        Confidence.DEFINITE if sure else Confidence.PROBABLE,
        f"{len(copies):,} of {stream.rows:,} rows of {stream.name} have {what} (`{stream.keys.name}`): "
        "a join counts them twice",
        f"keep one row an id before joining: drop_duplicates({list(stream.keys.columns)}), or unique(subset=…) in "
        "polars; then find out what writes rows twice (a retry, an export appended to itself)",
        stream.keys.name,
        {
            "source": stream.name,
            "count": len(copies),
            "share": share,
            "repeated_ids": int(np.count_nonzero(counted.counts > 1)),
            "most_rows_of_one_id": int(counted.counts.max()),
            "first_rows": positions(copies),
        },
    )
    return copies


def _copies(
    pair: Pair, stream: Stream, later: Rows, before: Rows, series: bool
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], bool]:
    """Which repeats are copies of the row before them, and whether the whole row says so."""
    clock = stream.clock
    if clock is not None:
        known = clock.valid[later] & clock.valid[before]
        apart = np.abs(clock.ns[later] - clock.ns[before])
        near = known & (apart == 0 if series else apart <= pair.slack)
    else:
        near = np.zeros(len(later), bool)
    if (clock is None or series) and stream.source.repeatable:
        taken = {*stream.roles.id, stream.roles.time}
        rest = [c.name for c in stream.source.columns if c.name not in taken and c.kind is not Kind.NESTED]
        if rest:
            code = row_hashes(stream.source, rest[:_HASHED_COLUMNS])
            same = code[later] == code[before]
            return (near & same, True) if clock is not None else (same, True)
    if clock is None and not series:
        # nothing but the id to go by
        return np.ones(len(later), bool), False
    return (near if not series else np.zeros(len(later), bool)), False


def _forms(pair: Pair) -> list[Form]:
    assert pair.tallies and pair.shared and pair.left.keys and pair.right.keys
    ours, theirs = pair.tallies
    few = min(len(pair.shared.missing), len(pair.shared.extra))
    if few < 2 or few <= pair.settings.missing * min(len(ours.ids), len(theirs.ids)) / 10:
        return []
    return find_forms(
        pair.left.keys,
        pair.right.keys,
        ours.first[pair.shared.missing],
        theirs.first[pair.shared.extra],
        pair.settings.rescue,
    )


def _same_type(pair: Pair) -> bool:
    """False, with a finding, where equal ids are stored in types that a join does not compare."""
    assert pair.coded and pair.shared and pair.left.keys and pair.right.keys
    if pair.coded.same_type or not len(pair.shared.left):
        return True
    kinds = {str(part.dtype) == "String" for part in [*pair.left.keys.parts, *pair.right.keys.parts]}
    numbers = kinds == {False}
    count = len(pair.shared.left)
    pair.report(
        "type",
        Severity.INFO if numbers else Severity.ERROR,
        Confidence.DEFINITE,
        f"`{pair.left.keys.name}` is {pair.left.keys.types} in {pair.left.name} and {pair.right.keys.types} in "
        f"{pair.right.name}: {count:,} ids are equal when written as text, "
        + ("and some engines refuse to join the two types" if numbers else "and none of them in a join as they are"),
        "store the id in one type on both sides before joining; text keeps leading zeros and large numbers",
        pair.left.keys.name,
        {"types": [pair.left.keys.types, pair.right.keys.types], "count": count, "cause": "type"},
    )
    return numbers


def _report_forms(pair: Pair, forms: list[Form]) -> None:
    assert pair.tallies and pair.shared and pair.left.keys and pair.right.keys and pair.coded
    first = forms[0]
    share = first.rescued / min(len(t.ids) for t in pair.tallies)
    causes = [form.cause for form in forms]
    if not pair.coded.same_type and "type" not in causes:
        causes.insert(0, "type")
    steps = " and ".join(form.text for form in forms)
    pair.report(
        "format",
        Severity.ERROR if share > pair.settings.missing else Severity.WARNING,
        Confidence.DEFINITE if first.rescued >= 0.9 * first.of else Confidence.PROBABLE,
        f"{first.rescued:,} of the {first.of:,} ids (`{pair.left.keys.name}`) without a partner in {pair.left.name} or "
        f"{pair.right.name} match once {steps}",
        "write the id in one form where the sources are read, before the join, and say so in the schema",
        pair.left.keys.name,
        {
            "cause": causes[0] if len(causes) == 1 else causes,
            "count": first.rescued,
            "of": first.of,
            "matched_as_stored": len(pair.shared.left) if pair.coded.same_type else 0,
            "types": [pair.left.keys.types, pair.right.keys.types],
            "first_rows": positions(pair.tallies[0].first[pair.shared.missing]),
        },
    )


def _within(pair: Pair, which: Rows, left: bool) -> Rows:
    """The rows of ids without a partner that lie within the period that the other source covers."""
    assert pair.tallies is not None
    rows: Rows = pair.tallies[0 if left else 1].first[which]
    mine, other = (pair.left, pair.right) if left else (pair.right, pair.left)
    if pair.shape != "one" or mine.clock is None or other.clock is None or pair.clocks is None:
        return rows
    if not other.clock.valid.any():
        return rows
    covered = other.clock.ns[other.clock.valid]
    offset = round(pair.clocks.offset) * (1 if left else -1)
    edge = int(5 * pair.clocks.jitter + abs(pair.clocks.moved) + pair.slack)
    at = mine.clock.ns[rows] + offset
    inside = ~mine.clock.valid[rows] | ((at >= covered.min() - edge) & (at <= covered.max() + edge))
    outside = rows[~inside]
    if len(outside) > pair.settings.missing * mine.rows:
        before = int(np.count_nonzero(mine.clock.ns[outside] + offset < covered.min()))
        pair.report(
            "coverage",
            Severity.INFO,
            Confidence.DEFINITE,
            f"{len(outside):,} of {mine.rows:,} rows of {mine.name} lie outside the period that {other.name} covers "
            f"({before:,} before, {len(outside) - before:,} after): their ids cannot match",
            "join over the period that both sources cover, or fetch the rest of the shorter one",
            mine.roles.time or "",
            {"source": mine.name, "count": len(outside), "before": before, "share": len(outside) / mine.rows},
        )
    covered_rows: Rows = rows[inside]
    return covered_rows


def _lost(
    pair: Pair, mine: Stream, other: Stream, rows: Rows, share: float, counted: Tally, kind: str, severity: Severity
) -> None:
    assert mine.keys is not None
    facts: dict[str, object] = {
        "source": mine.name,
        "count": len(rows),
        "of": len(counted.ids),
        "share": share,
        "first_rows": positions(rows),
    }
    where = ""
    block = _block(mine, rows)
    if block is not None:
        facts["within_s"] = block / 1e9
        where = f", all within {show(block)}"
    pair.report(
        kind,
        severity,
        Confidence.DEFINITE,
        f"{len(rows):,} of {len(counted.ids):,} ids of {mine.name} ({share:.1%}, `{mine.keys.name}`) are not in "
        f"{other.name}{where}",
        f"find out which step drops them from {other.name} (a filter, a partition that was not read, rows that came "
        "late); until then join with how='left' and count the rows without a partner"
        if kind == "missing"
        else f"an inner or left join from {pair.left.name} drops these rows: say whether that is meant",
        mine.keys.name,
        facts,
    )


def _block(stream: Stream, rows: Rows) -> float | None:
    """The time span of the rows, ns, where it is a small part of the source's: a hole, not a scatter."""
    clock = stream.clock
    if clock is None or len(rows) < 20 or not clock.valid[rows].all():
        return None
    low, high = np.percentile(clock.ns[rows], [2.5, 97.5])
    whole = clock.ns[clock.valid]
    span = float(whole.max() - whole.min())
    return float(high - low) if high - low < 0.25 * span else None
