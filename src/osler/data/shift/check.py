"""`check_shift`: has the joint distribution of many features moved, how far, since when, and along what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report, Series
from osler.core.settings import Settings
from osler.core.settings.shift import Shift
from osler.data.need import DataError
from osler.data.shift import tell
from osler.data.shift.intake import Intake, Plan, change_p, plan, regrouped
from osler.data.shift.reference import Reference, State, WindowShift
from osler.data.shift.rows import Reservoir, open_rows
from osler.data.shift.stretches import stretch
from osler.data.shift.tiers import Threshold, Tier
from osler.data.shift.whole import Statistic, compare

RULE = "covariate-shift"
Floats = NDArray[np.float64]


@dataclass(slots=True)
class Outcome:
    """All that a comparison found.

    Attributes:
        reference: the fitted reference.
        whole: statistics of all current rows against all reference rows.
        windows: one per window of the current rows, in order.
        starts: position of the first row of every window, and the end of the last.
        thresholds: of KL and MMD when all windows are judged together.
        began: index of the window in which it began; None where no window alone shows it.
        left_over: whole rows after the last full window.
        recent: state of the current rows since it began (a sample of them).
    """

    reference: Reference
    whole: list[Statistic] = field(default_factory=list)
    windows: list[WindowShift] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    thresholds: tuple[Threshold, Threshold] | None = None
    began: int | None = None
    left_over: int = 0
    recent: State | None = None

    @property
    def tier(self) -> Tier:
        """The highest tier of the whole comparison and of any window."""
        return max([s.tier for s in self.whole] + [w.tier for w in self.windows], default=Tier.SILENT)

    @property
    def worst(self) -> WindowShift:
        """The window that moved furthest."""
        return max(self.windows, key=lambda w: (w.tier, w.mmd))

    @property
    def ended(self) -> int:
        """Index of the last window above its threshold."""
        return max(i for i, w in enumerate(self.windows) if w.tier > Tier.SILENT)


def check_shift(
    reference: Any,
    current: Any,
    *,
    columns: Sequence[str] | None = None,
    window: int | None = None,
    settings: Settings | None = None,
    progress: Progress = quiet,
) -> Report:
    """Compare the joint distribution of current rows with that of reference rows (rule `covariate-shift`).

    Three statistics, each set against what the same rows give when they are dealt at random to both sides:

    - the Gaussian KL(current || reference) in nats, with covariances shrunk so that they are never singular;
    - the same divergence from distances to nearest neighbours, which needs no model;
    - MMD under a Gaussian kernel. The thresholds 0.03 and 0.10 are on MMD itself, not on MMD².

    Estimates of KL are far above 0 on identical data (1.1 nats at 1,000 rows and 64 features), so the null's mean is
    taken off. Below KL 0.05 and MMD 0.03 all is silent; up to 0.15 and 0.10 the finding is a warning (collect fresh
    samples); above it is an error (freeze the model, train anew). Where identical data reach those values by chance, the
    thresholds rise until they do not. Rows are compared in windows of `window` too, in their order, which tells when it
    began.

    Args:
        reference, current: arrays of shape [n, d] (numpy, torch, `.npy` files; any real dtype), or tables (paths,
            frames, whatever `open_source` takes) by their numeric columns and lists of numbers. Every feature is
            clipped and standardised by the reference.
        columns: features that take part; None takes all that can.
        window: rows in a window, in place of `settings.shift.window`.
        settings: the whole tree.
        progress: told how far it is.

    Raises:
        DataError: unreadable data, unknown columns, no features in common, arrays of different width.
    """
    chosen = (settings or Settings()).shift
    size = chosen.window if window is None else window
    if size < chosen.min_rows:
        raise DataError(f"a window of {size} rows is too small: at least {chosen.min_rows} (`shift.min_rows`)")
    left = open_rows(reference, columns, "reference")
    right = open_rows(current, columns, "current")
    what = plan(left, right, chosen, progress=progress)
    report = Report(
        subject={
            "kind": "check",
            "check": "shift",
            "reference": left.name,
            "current": right.name,
            "rows": 0,
            "features": 0,
        }
    )
    report.subject["reference_rows"] = what.seen
    intake = Intake(right, what, chosen, progress)
    _judge(report, what, intake, chosen, size, progress)
    report.subject["rows"] = intake.seen
    for name, why in (*what.left_out, *intake.left_out):
        report.not_checked.append(NotChecked(f"column {name}", why, is_rule=False))
    _note_gaps(report, what, intake, left.name, right.name)
    return report


def _judge(report: Report, what: Plan, intake: Intake, settings: Shift, size: int, progress: Progress) -> None:
    kept = [what.names.index(name) for name in intake.names]
    rows = what.rows[:, kept]
    enough = bool(kept) and len(rows) >= 2 * settings.min_rows
    outcome: Outcome | None = None
    if enough:
        outcome = _compare(rows, intake, settings, size, progress)
    else:
        _drain(intake)
    if outcome is None or intake.whole < settings.min_rows:
        report.not_checked.append(NotChecked(RULE, _too_little(kept, rows, intake, settings)))
    else:
        report.subject["features"] = len(kept)
        tell.statistics(report, outcome)
        if outcome.tier > Tier.SILENT:
            report.findings.append(tell.finding(outcome, intake.seen))
        _note_calibration(report, outcome, size)
    changed = {
        name: (k, n)
        for name, (k, n) in intake.changed.items()
        if n and k >= settings.constant_share * n and change_p(k, n, what.seen) * len(intake.changed) < settings.level
    }
    if changed:
        report.findings.append(tell.constants(changed))


def _too_little(kept: list[int], rows: Floats, intake: Intake, settings: Shift) -> str:
    if not kept:
        return "no feature is left to compare: all are constant, missing or identifiers"
    if len(rows) < 2 * settings.min_rows:
        return f"the reference has {len(rows)} whole rows; at least {2 * settings.min_rows} are needed"
    return (
        f"the current data have {intake.whole} whole rows; at least {settings.min_rows} are needed (`shift.min_rows`)"
    )


def _drain(intake: Intake) -> None:
    for _ in intake.batches():
        pass


def _compare(rows: Floats, intake: Intake, settings: Shift, size: int, progress: Progress) -> Outcome:
    fitted = Reference.fit(rows, intake.names, settings, window=size, progress=progress)
    outcome = Outcome(fitted)
    sample = Reservoir(2 * settings.max_exact, len(intake.names), seed=1)
    where: list[NDArray[np.int64]] = []
    states = []
    for group, at in regrouped(intake.batches(), fitted.window):
        sample.add(group)
        where.append(at)
        if len(group) == fitted.window:
            states.append(fitted.judge(fitted.of(group), fitted.thresholds()))
        else:
            outcome.left_over = len(group)
    if intake.whole < settings.min_rows:
        return outcome
    scaled = fitted.scaler.apply(sample.rows)
    held = fitted.scaler.apply(rows[_evenly(len(rows), settings.max_exact)])
    drawn = scaled[_evenly(len(scaled), settings.max_exact)]
    thinned = max(len(drawn) / intake.whole, len(held) / len(rows))
    outcome.whole = compare(drawn, held, fitted, settings.level / 2, 1 + (fitted.time - 1) * thinned, progress=progress)
    if len(states) > 1 or (states and outcome.left_over):
        outcome.thresholds = fitted.thresholds(2 * len(states))
        kl, mmd = outcome.thresholds
        outcome.windows = [w._replace(tier=max(kl.tier(w.kl), mmd.tier(w.mmd))) for w in states]
        outcome.starts = [int(at[0]) for at in where[: len(states)]] + [int(where[len(states) - 1][-1]) + 1]
        outcome.began = _began([w.tier for w in outcome.windows], [s.tier for s in states])
    since = 0 if outcome.began is None else outcome.began * fitted.window
    outcome.recent = fitted.of(sample.rows[sample.positions >= since])
    return outcome


def _began(tiers: list[Tier], alone: list[Tier]) -> int | None:
    """The first window of the run that ends with the last window above its threshold.

    `tiers` hold for all windows together, so that chance alone makes none of them rise; from one that has risen the run is
    followed back with the thresholds of a single window.
    """
    risen = [i for i, tier in enumerate(tiers) if tier > Tier.SILENT]
    if not risen:
        return None
    first = risen[-1]
    while first > 0 and alone[first - 1] > Tier.SILENT:
        first -= 1
    return first


def _evenly(rows: int, most: int) -> NDArray[np.intp]:
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.intp))


def _note_gaps(report: Report, what: Plan, intake: Intake, left: str, right: str) -> None:
    if what.incomplete:
        of = f"{what.sampled} rows of {left}" if what.sampled == what.seen else f"{what.sampled} rows drawn from {left}"
        report.notes.append(f"{what.incomplete} of {of} lack a value (missing, NaN or Inf) and were left out")
    lost = intake.seen - intake.whole
    if lost and intake.names:
        worst = int(intake.gaps.argmax())
        report.notes.append(
            f"{lost} of {intake.seen} rows of {right} lack a value (missing, NaN or Inf) and were left out, "
            f"most for {intake.names[worst]} ({intake.gaps[worst]})"
        )
        if lost > intake.seen / 2:
            report.not_checked.append(
                NotChecked(f"{lost} of {intake.seen} rows of {right}", "they lack a value", is_rule=False)
            )


def _note_calibration(report: Report, outcome: Outcome, size: int) -> None:
    fitted = outcome.reference
    if fitted.window < size:
        report.notes.append(
            f"the reference has fewer than two windows of {size} rows; windows of {fitted.window} were compared"
        )
    if all(s.key != "knn_kl" for s in outcome.whole):
        why = "rows hang together in time, so neighbours in time pass for neighbours in value"
        report.not_checked.append(NotChecked("nearest-neighbour KL", why, is_rule=False))
    if stretch(fitted.time) > 1:
        report.notes.append(
            f"rows of the reference are alike over about {fitted.time:.0f} rows; the nulls were drawn in stretches of "
            f"{min(stretch(fitted.time), fitted.window)}"
        )
    if not fitted.homogeneous:
        report.notes.append(
            f"consecutive windows of the reference differ from each other by MMD {fitted.own_mmd:.3f} and KL "
            f"{max(fitted.own_kl, 0):.3f}; thresholds were lifted to that, because the reference does it by itself"
        )
    if fitted.basis is not None:
        report.notes.append(
            f"the Gaussian KL was taken along {fitted.basis.shape[1]} random directions; MMD saw all features"
        )
    if outcome.left_over and outcome.windows:
        report.not_checked.append(
            NotChecked(
                f"the last {outcome.left_over} rows as a window", f"less than {fitted.window} rows", is_rule=False
            )
        )
    if outcome.windows:
        steps = outcome.starts[:-1]
        report.series.append(Series("kl", "curve", steps, [w.kl for w in outcome.windows], unit="nats"))
        report.series.append(Series("mmd", "curve", steps, [w.mmd for w in outcome.windows]))
