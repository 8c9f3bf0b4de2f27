"""The same id for different entities: attributes that never change, and then all change at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.core.finding import Confidence, Severity
from osler.data.sources.durations import show
from osler.data.sources.ids import Rows, Tally, positions
from osler.data.sources.pair import Pair
from osler.data.sources.read import Stream

Codes32 = np.ndarray[Any, np.dtype[np.uint32]]
_MIN_IDS = 50


@dataclass(slots=True)
class _Entities:
    """Attributes that describe an entity, and the pairs of rows of one id that contradict each other in them."""

    names: list[str]
    groups: list[list[str]]
    clash: dict[str, np.ndarray[Any, np.dtype[np.bool_]]]


def judge_reuse(pair: Pair) -> None:
    """Ids that name one entity in one source and another in the other, or first one and later another."""
    if pair.tallies is None or pair.shared is None:
        return
    _across(pair)
    for stream, counted in ((pair.left, pair.tallies[0]), (pair.right, pair.tallies[1])):
        if counted.repeated > pair.settings.duplicate:
            _within(pair, stream, counted)


def _across(pair: Pair) -> None:
    assert pair.tallies is not None and pair.shared is not None
    columns = [c for c in pair.left.attributes if c in pair.right.attributes]
    if not columns:
        return
    if len(pair.shared.left) < _MIN_IDS:
        pair.skip("id reuse", f"{len(pair.shared.left)} shared ids are too few; {_MIN_IDS} are needed")
        return
    rows = (pair.tallies[0].first[pair.shared.left], pair.tallies[1].first[pair.shared.right])
    before = {c: pair.left.attributes[c][rows[0]] for c in columns}
    after = {c: pair.right.attributes[c][rows[1]] for c in columns}
    entities = _entities(before, after, None, pair.settings.static_share)
    both = _all_clash(entities)
    if both is None:
        pair.skip("id reuse", "there are no two independent attributes that never change for one id")
        return
    count = int(np.count_nonzero(both))
    if not count:
        return
    pair.report(
        "reuse",
        Severity.WARNING if count >= 3 else Severity.INFO,
        Confidence.PROBABLE,
        f"{count:,} of {len(both):,} shared ids contradict each other in {', '.join(entities.names)}, which agree for all "
        f"others: `{pair.left.keys.name if pair.left.keys else ''}` names different entities in {pair.left.name} and "
        f"{pair.right.name} there",
        "join on the id together with what makes it unique (the site, the system, the period of validity), and stop "
        "handing out used ids",
        pair.left.keys.name if pair.left.keys else "",
        {"count": count, "of": len(both), "attributes": entities.names, "first_rows": positions(rows[0][both])},
    )


def _within(pair: Pair, stream: Stream, counted: Tally) -> None:
    if not stream.attributes or stream.keys is None:
        return
    order, ids = counted.order, np.repeat(np.arange(len(counted.ids)), counted.counts)
    clock = stream.clock
    if clock is not None:
        order = order[np.lexsort((clock.ns[order], ids))]
    inner = np.flatnonzero(ids[1:] == ids[:-1])
    if not len(inner):
        return
    previous, current = order[inner], order[inner + 1]
    which = ids[inner]
    before = {c: codes[previous] for c, codes in stream.attributes.items()}
    after = {c: codes[current] for c, codes in stream.attributes.items()}
    entities = _entities(before, after, which, pair.settings.static_share)
    both = _all_clash(entities)
    if both is None:
        return
    # an entity that was replaced changes once; a row that was filled in wrongly changes twice
    once = np.bincount(which[both], minlength=len(counted.ids)) == 1
    switched = np.flatnonzero(both & once[which])
    if not len(switched):
        return
    silent = _silence(clock.ns if clock is not None else None, counted, order, inner, switched, which)
    long = silent is not None and float(np.median(silent)) > pair.settings.reuse_gap
    count = len(switched)
    pair.report(
        "reuse",
        Severity.WARNING if count >= 3 else Severity.INFO,
        Confidence.PROBABLE,
        f"{count:,} of {len(counted.ids):,} ids (`{stream.keys.name}`) of {stream.name} change {', '.join(entities.names)} "
        "all at once, which no other id does: they name another entity from then on"
        + (f", mostly after a silence of {show(_pause(clock, order, inner, switched))}" if long and clock else ""),
        "split these ids at the change (a validity period, or a new surrogate key), and join on that",
        stream.keys.name,
        {
            "source": stream.name,
            "count": count,
            "of": len(counted.ids),
            "attributes": entities.names,
            "after_silence": long,
            "first_rows": positions(current[switched]),
        },
    )


def _pause(clock: Any, order: Rows, inner: Rows, switched: Rows) -> float:
    at = inner[switched]
    return float(np.median(clock.ns[order[at + 1]] - clock.ns[order[at]]))


def _silence(
    ns: Any, counted: Tally, order: Rows, inner: Rows, switched: Rows, which: Rows
) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """The pause before each change, in lengths of the id's longer period of use."""
    if ns is None:
        return None
    at = inner[switched]
    first = counted.starts[which[switched]]
    last = first + counted.counts[which[switched]] - 1
    pause = (ns[order[at + 1]] - ns[order[at]]).astype(np.float64)
    used = np.maximum(ns[order[at]] - ns[order[first]], ns[order[last]] - ns[order[at + 1]]).astype(np.float64)
    lengths: np.ndarray[Any, np.dtype[np.float64]] = pause / np.maximum(used, 1.0)
    return lengths


def _entities(before: dict[str, Codes32], after: dict[str, Codes32], which: Rows | None, share: float) -> _Entities:
    """The static attributes among the columns: those that agree within nearly all ids."""
    names, clash = [], {}
    for column, codes in before.items():
        other = after[column]
        differs = (codes != other) & (codes != 0) & (other != 0)
        if which is None:
            changed, ids = int(np.count_nonzero(differs)), len(codes)
        else:
            changed, ids = len(np.unique(which[differs])), len(np.unique(which))
        if ids >= _MIN_IDS and changed <= (1 - share) * ids and len(np.unique(codes[:100_000])) > 1:
            names.append(column)
            clash[column] = differs
    return _Entities(names, _independent(names, before), clash)


def _independent(names: list[str], codes: dict[str, Codes32]) -> list[list[str]]:
    """Columns in groups, within which one (nearly) determines the other: a city and its post code move together."""
    groups: list[list[str]] = []
    for name in names:
        for group in groups:
            if any(_determined(codes[name][:100_000], codes[other][:100_000]) for other in group):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _determined(a: Codes32, b: Codes32) -> bool:
    pairs = len(np.unique((a.astype(np.uint64) << np.uint64(32)) | b))
    return pairs <= 1.2 * max(len(np.unique(a)), len(np.unique(b)))


def _all_clash(entities: _Entities) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """Where at least two independent groups, and more than half of all groups, contradict."""
    if len(entities.groups) < 2:
        return None
    each = [np.any([entities.clash[c] for c in group], axis=0) for group in entities.groups]
    votes = np.sum(each, axis=0)
    found: np.ndarray[Any, np.dtype[np.bool_]] = (votes >= 2) & (votes > len(each) / 2)
    return found
