"""A series shuffled by the split: rows carry lags of their neighbours, and the neighbours land on the other side."""

from __future__ import annotations

from collections.abc import Iterator

from osler.core.finding import Confidence
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.leakage import TRAIN_TEST, rows
from osler.syntax.trace import Event
from osler.syntax.values import CONSTANT, INSTANCE, SEQUENCE, Value, alternatives, slice_back

RULE = "split-time-overlap"
CALLS = frozenset({"train_test_split", "split"})

_LAGS = frozenset((".shift", ".rolling", ".pct_change", ".ewm"))
_TIMES = ("date", "time", "timestamp", "datetime", "day", "month", "year")
_SHUFFLES = ("KFold", "StratifiedKFold")
_ALWAYS = ("ShuffleSplit", "StratifiedShuffleSplit")


def check(facts: Facts) -> Iterator[Hit]:
    """Each shuffled split of rows that were given values of earlier or later rows."""
    for one in rows(facts):
        for split in one.splits:
            event = split.result.event
            if event is None or split.cut or not _shuffles(event):
                continue
            bases = [*split.bases, *event.arguments]
            lag = next((v for b in bases for v in slice_back(b, before=split.order) if _lag(v)), None)
            if lag is not None and lag.site is not None:
                yield Hit(
                    split.site,
                    f"These rows form a series (`{lag.name[1:]}` in {line_of(lag.site)} gives each one values of its "
                    "neighbours) and the split shuffles them, so that training rows lie around every test row.",
                    "Split in order of time: shuffle=False, or TimeSeriesSplit with a gap as long as the lags.",
                    Confidence.PROBABLE,
                    evidence={"lag": lag.site},
                )
                continue
            ordered = next((v for b in bases for v in slice_back(b, before=split.order) if _by_time(v)), None)
            if ordered is not None and ordered.site is not None:
                yield Hit(
                    split.site,
                    f"The rows are put in order of time in {line_of(ordered.site)}, and the split shuffles them.",
                    "Where the model will forecast, split in order of time: shuffle=False, or TimeSeriesSplit.",
                    Confidence.POSSIBLE,
                    evidence={"sorted": ordered.site},
                )


def _shuffles(event: Event) -> bool:
    if event.name in TRAIN_TEST:
        given = event.keywords.get("shuffle")
        return "**" not in event.keywords and (given is None or given.constant is True)
    for one in alternatives(event.receiver) if event.receiver is not None else ():
        last = one.name.rpartition(".")[2]
        made = one.event
        if one.kind != INSTANCE or made is None:
            continue
        if last in _ALWAYS:
            return True
        shuffle = made.argument(1, "shuffle")
        if last in _SHUFFLES and shuffle is not None and shuffle.constant is True:
            return True
    return False


def _lag(value: Value) -> bool:
    """A shift or a moving window over a column, not within groups that are short histories of many."""
    if value.name not in _LAGS or not value.sources or value.event is None:
        return False
    axis = value.event.keywords.get("axis")
    if axis is not None and axis.constant != 0:
        return False
    return not any(v.name == ".groupby" for v in slice_back(value.sources[0], limit=12))


def _by_time(value: Value) -> bool:
    event = value.event
    if value.name != ".sort_values" or event is None:
        return False
    by = event.argument(0, "by")
    names = [by, *by.items] if by is not None and by.kind == SEQUENCE else [by]
    return any(v is not None and v.kind == CONSTANT and str(v.constant).lower() in _TIMES for v in names)
