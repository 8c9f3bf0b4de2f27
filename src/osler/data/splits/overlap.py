"""Evaluation after training: rows that overlap in time, shuffled series, gaps that are too short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Series
from osler.core.settings.splits import Splits
from osler.data.splits.instants import Instants, in_words, span
from osler.data.splits.wording import by_share, count, listed_rows, share


def check_overlap(
    name: str,
    train: Instants,
    eval_: Instants,
    gap: Any,
    embargo: Any,
    settings: Splits,
) -> tuple[list[Finding], list[NotChecked], bool | None]:
    """split-time-overlap: training rows that are not before evaluation by at least `gap`.

    With groups every group has its own time. Training rows after the end of evaluation count too, unless an `embargo` is
    named and they are later than it allows (purged cross-validation, López de Prado 2018, chapter 7).

    Args:
        name: the time column.
        train, eval_: its values on both sides.
        gap: least distance of training before the start of evaluation; None: none.
        embargo: least distance of training after the end of evaluation; None: no training row may be later.
        settings: thresholds.

    Returns:
        findings, what was not checked, and whether the split is one by time (None: that cannot be said).
    """
    if train.numeric != eval_.numeric:
        return (
            [],
            [NotChecked("split-time-overlap", f"{name} holds timestamps on one side and numbers on the other")],
            None,
        )
    zones: list[Finding] = []
    if not train.numeric and bool(train.aware) != bool(eval_.aware) and train.valid.any() and eval_.valid.any():
        zones.append(_zones_differ(name, train))
    units = set(train.units) | set(eval_.units)
    if len(units) > 1:
        if len(train.units) == len(eval_.units) == 1:
            zones.append(_units_differ(name, train, eval_))
        return (
            zones,
            [NotChecked("split-time-overlap", f"{name} is counted in {' and in '.join(sorted(units))}")],
            None,
        )
    needed = 0.0 if gap is None else span(gap, "gap", train)
    later = None if embargo is None else span(embargo, "embargo", train)
    t_rows, e_rows = np.flatnonzero(train.valid), np.flatnonzero(eval_.valid)
    if not t_rows.size or not e_rows.size:
        return zones, [NotChecked("split-time-overlap", f"one side has no time in {name}")], None
    found = _violations(train, eval_, t_rows, e_rows, needed, later)
    if found is None:
        return zones, [], False
    if not found.bad.size:
        return zones, [], True
    shuffled = found.inside >= settings.shuffled and found.train_inside >= 0.5
    late = found.late_eval
    severity = by_share(late, e_rows.size, settings)
    close_only = not late
    if close_only:
        severity = Severity.WARNING
    if shuffled:
        severity = Severity.ERROR
    within = " of the same group" if train.grouped else ""
    if shuffled:
        message = (
            f"The split is shuffled over time: {share(found.inside, 1)} of the evaluation rows lie between the first and "
            f"the last training row{within} in {name}, so the model has seen what came after them."
        )
    elif close_only:
        message = (
            f"{count(found.bad.size, 'training row')} lie{'s' if found.bad.size == 1 else ''} closer than "
            f"{in_words(needed if found.nearest_before else later or 0.0, train)} to evaluation in {name}, "
            f"first at row {int(found.bad[0])}."
        )
    else:
        message = (
            f"{count(found.bad.size, 'training row')} ({share(found.bad.size, t_rows.size)}) "
            f"lie{'s' if found.bad.size == 1 else ''} at or after the start of evaluation{within} in {name}, first at row "
            f"{int(found.bad[0])}; {count(late, 'evaluation row')} of {e_rows.size:,} ({share(late, e_rows.size)}) "
            "are no later than training."
        )
    finding = Finding(
        "split-time-overlap",
        severity,
        Confidence.DEFINITE,
        message,
        Where(column=name),
        {
            "train_rows_overlapping": int(found.bad.size),
            "train_rows": int(t_rows.size),
            "eval_rows_not_later": int(late),
            "eval_rows": int(e_rows.size),
            "eval_between_train": round(found.inside, 4),
            "shuffled": shuffled,
            "gap": needed,
            "rows": listed_rows(found.bad, settings),
        },
        (
            "Split by time: train on everything before a date and evaluate after it (osler.TimeSplit gives rolling and "
            "expanding windows)."
            if shuffled
            else "Drop these training rows, or start evaluation later; osler.TimeSplit with an embargo does it for every fold."
        ),
        touches=frozenset({f"column:{name}"}),
    )
    return [*zones, finding], [], False


def time_histogram(name: str, train: Instants, eval_: Instants, bins: int = 40) -> Series | None:
    """When the rows of either side lie, for a plot; None where there is no range."""
    sides = [i.values[i.valid].astype(np.float64) for i in (train, eval_)]
    if train.numeric != eval_.numeric or not all(s.size for s in sides):
        return None
    low, high = min(s.min() for s in sides), max(s.max() for s in sides)
    if not high > low:
        return None
    edges = np.linspace(low, high, bins + 1)
    shares: list[list[float | None]] = [[*(np.histogram(s, edges)[0] / s.size).tolist()] for s in sides]
    if not train.numeric:
        edges = edges / 1e9
    return Series(
        name,
        "histogram",
        [],
        shares,
        ["train", "evaluation"],
        "" if train.numeric else "s since 1970",
        edges=edges.tolist(),
    )


@dataclass(slots=True)
class _Violations:
    bad: npt.NDArray[np.int64]
    late_eval: int
    inside: float
    train_inside: float
    nearest_before: bool


def _violations(
    train: Instants,
    eval_: Instants,
    t_rows: npt.NDArray[np.int64],
    e_rows: npt.NDArray[np.int64],
    gap: float,
    embargo: float | None,
) -> _Violations | None:
    """Training rows too near to evaluation; None where no group is on both sides."""
    t, e = train.values[t_rows], eval_.values[e_rows]
    keys = np.unique(np.concatenate([train.groups[t_rows], eval_.groups[e_rows]]))
    t_group = np.searchsorted(keys, train.groups[t_rows])
    e_group = np.searchsorted(keys, eval_.groups[e_rows])
    t_low, t_high = _ranges(t, t_group, keys.size)
    e_low, e_high = _ranges(e, e_group, keys.size)
    both = np.isin(np.arange(keys.size), t_group) & np.isin(np.arange(keys.size), e_group)
    if not both.any():
        return None
    facing = both[t_group]
    before = e_low[t_group] - t
    ok = (before > 0) & (before >= gap)
    if embargo is not None:
        after = t - e_high[t_group]
        ok |= (after > 0) & (after >= embargo)
    bad = facing & ~ok
    late = both[e_group] & (e <= t_high[e_group])
    if embargo is not None:
        # training may go on after evaluation, so only evaluation rows beside a bad training row are compromised
        late &= np.isin(e_group, t_group[bad & (before <= 0)])
    e_inside = both[e_group] & (e >= t_low[e_group]) & (e <= t_high[e_group])
    t_inside = facing & (t >= e_low[t_group]) & (t <= e_high[t_group])
    return _Violations(
        t_rows[bad],
        int(late.sum()),
        float(e_inside.mean()),
        float(t_inside.sum() / max(1, facing.sum())),
        bool((bad & (before > 0)).any()),
    )


def _ranges(values: Any, groups: npt.NDArray[np.int64], n: int) -> tuple[Any, Any]:
    """Least and greatest value of each group."""
    if values.dtype.kind == "f":
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
    else:
        low, high = np.full(n, np.iinfo(np.int64).max // 2), np.full(n, np.iinfo(np.int64).min // 2)
    np.minimum.at(low, groups, values)
    np.maximum.at(high, groups, values)
    return low, high


def _zones_differ(name: str, train: Instants) -> Finding:
    aware = "training" if train.aware else "evaluation"
    return Finding(
        "time-not-monotonic",
        Severity.WARNING,
        Confidence.PROBABLE,
        f"The times in {name} have a zone in {aware} only: where the other side is local time, the two are hours apart.",
        Where(column=name),
        {"with_zone": aware},
        "Convert both sides to UTC; here the side without a zone was read as UTC.",
        touches=frozenset({f"column:{name}"}),
    )


def _units_differ(name: str, train: Instants, eval_: Instants) -> Finding:
    return Finding(
        "time-not-monotonic",
        Severity.ERROR,
        Confidence.DEFINITE,
        f"{name} counts {next(iter(train.units))} since 1970 in training and {next(iter(eval_.units))} in evaluation.",
        Where(column=name),
        {"train": next(iter(train.units)), "evaluation": next(iter(eval_.units))},
        "Convert both sides to timestamps.",
        touches=frozenset({f"column:{name}"}),
    )
