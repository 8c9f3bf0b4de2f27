"""Two profiles compared column by column: which columns moved, by how much, and how sure that is.

A column drifts when a difference is significant after Holm's correction over all columns and tests, and matters by an
effect that a person would act on. Numbers: significance by Kolmogorov–Smirnov or by the Wasserstein permutation test,
effect by either distance. Categories: χ² and the Jensen–Shannon distance; unseen categories by themselves. Missing and
infinite values: Fisher's exact test and the change of their share.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.core.settings import Settings
from osler.core.settings.drift import Drift
from osler.data.drift import brackets, null, summary
from osler.data.drift.brackets import Bracket
from osler.data.drift.categorical import Categories, aligned
from osler.data.drift.grid import Grid
from osler.data.drift.profile import ColumnState, Profile
from osler.data.need import DataError
from osler.data.tables import Kind

DRIFT, STEADY, NOT_JUDGED = "drift", "steady", "not judged"

_RELATIVE_ROUNDING = 1e-6  # of a constant column's own value: float32 keeps seven digits


@dataclass(slots=True)
class ColumnTest:
    """One hypothesis test of a column.

    Attributes:
        name: `ks`, `wasserstein`, `categories`, `unseen`, `missing` or `infinite`.
        p: its p-value; 1 where the effect is too small for it to be worth computing.
        adjusted: the p-value after Holm's correction.
    """

    name: str
    p: float
    adjusted: float = 1.0


@dataclass(slots=True)
class ColumnVerdict:
    """What was found about one column.

    Attributes:
        name, form, kind: as in `ColumnState`; the kind of the current data.
        verdict: `drift`, `steady` or `not judged`.
        reasons: what drifted: `distribution`, `categories`, `unseen`, `missing`, `infinite`.
        why: why it, or its distribution, could not be judged; empty where it was.
        values: rows with a value, reference and current (infinities included).
        rows: all rows, reference and current.
        missing: shares without a value, reference and current.
        infinite: shares of infinite values, reference and current.
        ks: bracket of the Kolmogorov–Smirnov distance.
        wasserstein: bracket of the Wasserstein distance of finite values, in the column's unit.
        spread: the reference's spread, the unit of effects; 0 for a constant column.
        js, psi: Jensen–Shannon distance of categories; population stability index (ten groups for numbers).
        unseen: share of current rows in categories that the reference does not hold.
        apart: how far values may lie apart and count as the same, in the column's unit.
        firm: the part of the Kolmogorov–Smirnov distance that rounding cannot explain; the effect that is judged.
        tests: the tests that were made.
    """

    name: str
    form: str
    kind: Kind
    verdict: str = STEADY
    reasons: list[str] = field(default_factory=list)
    why: str = ""
    values: tuple[int, int] = (0, 0)
    rows: tuple[int, int] = (0, 0)
    missing: tuple[float, float] = (0.0, 0.0)
    infinite: tuple[float, float] = (0.0, 0.0)
    ks: Bracket | None = None
    wasserstein: Bracket | None = None
    spread: float = math.nan
    js: float | None = None
    psi: float | None = None
    unseen: float | None = None
    apart: float = 0.0
    firm: float | None = None
    tests: list[ColumnTest] = field(default_factory=list)

    def rounding(self, drift: Drift) -> bool:
        """Whether the column would count as far away but for rounding."""
        return self.ks is not None and self.firm is not None and self.ks.low >= drift.ks > self.firm

    @property
    def moved(self) -> float | None:
        """The lower end of the Wasserstein distance in spreads of the reference; 0 or Inf over a constant reference."""
        if self.wasserstein is None:
            return None
        constant = not self.spread > 0
        return 0.0 if constant and self.wasserstein.low <= self.apart else in_spreads(self.wasserstein.low, self.spread)

    @property
    def p(self) -> float | None:
        """The smallest adjusted p-value; None where nothing was tested."""
        return min((test.adjusted for test in self.tests), default=None)

    def adjusted(self, *names: str) -> float:
        """The smallest adjusted p-value of the tests of these names; 1 where there is none."""
        return min((test.adjusted for test in self.tests if test.name in names), default=1.0)


def in_spreads(distance: float, spread: float) -> float:
    """A distance in spreads; 0 / 0 is 0."""
    if distance == 0:
        return 0.0
    return distance / spread if spread > 0 else math.inf


def compare(
    reference: Profile, current: Profile, settings: Settings | None = None, *, numeric: Sequence[str] = ()
) -> list[ColumnVerdict]:
    """Judge every column of `current`, which was counted over the edges of `reference`.

    Args:
        reference: the profile to compare with.
        current: made by `reference.matching`, `reference.empty` or `build_profile(profile_of=reference)`.
        settings: `drift` is used.
        numeric: times to judge as numbers.

    Raises:
        DataError: the profiles lie over different edges.
    """
    drift = (settings or Settings()).drift
    verdicts = []
    for name, now in current.columns.items():
        before = reference.columns.get(name)
        if before is not None:
            judged = before.asked or now.asked or name in numeric
            verdicts.append(_measured(before, now, drift, judged))
    total = sum(len(v.tests) for v in verdicts)
    for verdict in verdicts:
        _permute(verdict, reference, current, drift, total)
    tests = [test for verdict in verdicts for test in verdict.tests]
    for test, adjusted in zip(tests, null.holm([test.p for test in tests])):
        test.adjusted = adjusted
    for verdict in verdicts:
        verdict.reasons = list(_reasons(verdict, drift))
        if verdict.reasons:
            verdict.verdict = DRIFT
    return verdicts


def _measured(before: ColumnState, now: ColumnState, drift: Drift, judged: bool) -> ColumnVerdict:
    verdict = ColumnVerdict(now.name, before.form, now.kind, rows=(before.rows, now.rows))
    if min(verdict.rows) < drift.min_values:
        side, rows = ("reference", before.rows) if before.rows < drift.min_values else ("current data", now.rows)
        count = "no rows" if rows == 0 else f"{rows} row{'s' * (rows > 1)}"
        return _unjudged(verdict, f"the {side} has {count}; {drift.min_values} are needed")
    verdict.missing = (before.missing / before.rows, now.missing / now.rows)
    verdict.tests.append(ColumnTest("missing", null.share_p(now.missing, now.rows, before.missing, before.rows)))
    old, new = before.state, now.state
    try:
        if isinstance(old, Grid) and isinstance(new, Grid):
            _numbers(verdict, old, new, drift, judged)
        elif isinstance(old, Categories) and isinstance(new, Categories):
            _categories(verdict, old, new, drift, before.asked or now.asked)
        else:
            why = (
                "nothing but missing values"
                if before.kind is Kind.NULL
                else f"{before.kind.value} columns are not judged"
            )
            _unjudged(verdict, f"{why}; only their share is compared")
    except DataError as error:
        raise DataError(f"column {now.name!r}: {error}") from None
    return verdict


def _unjudged(verdict: ColumnVerdict, why: str) -> ColumnVerdict:
    verdict.verdict, verdict.why = NOT_JUDGED, why
    return verdict


def _numbers(verdict: ColumnVerdict, old: Grid, new: Grid, drift: Drift, judged: bool) -> None:
    values = tuple(g.n + g.neg_inf + g.pos_inf for g in (old, new))
    verdict.values = (values[0], values[1])
    verdict.infinite = ((values[0] - old.n) / verdict.rows[0], (values[1] - new.n) / verdict.rows[1])
    verdict.spread = summary.spread(old)
    verdict.apart = _rounding(old, verdict.spread, drift)
    if values[0] - old.n or values[1] - new.n:
        p = null.share_p(values[1] - new.n, verdict.rows[1], values[0] - old.n, verdict.rows[0])
        verdict.tests.append(ColumnTest("infinite", p))
    if min(values) < drift.min_values:
        side = "reference" if values[0] < drift.min_values else "current data"
        _unjudged(verdict, f"only {min(values)} values in the {side}; {drift.min_values} are needed")
        return
    if old.n and new.n:
        verdict.ks, verdict.wasserstein = brackets.distances(old, new)
        verdict.psi = summary.psi(*summary.deciles(old, new))
    else:
        verdict.ks = brackets.ks(old, new)
    if verdict.kind is Kind.TIME and not judged:
        _unjudged(verdict, "times move on by themselves; name the column as numeric to have it judged")
        return
    verdict.firm = max(0.0, brackets.ks_apart(old, new, verdict.apart))
    verdict.tests.append(ColumnTest("ks", null.ks_p(verdict.firm, *values)))
    if verdict.wasserstein is not None:
        verdict.tests.append(ColumnTest("wasserstein", 1.0))


def _rounding(old: Grid, spread: float, drift: Drift) -> float:
    if spread > 0:
        return drift.rounding * spread
    return _RELATIVE_ROUNDING * max(abs(old.low), abs(old.high)) if old.n else 0.0


def _categories(verdict: ColumnVerdict, old: Categories, new: Categories, drift: Drift, asked: bool) -> None:
    verdict.values = (old.n, new.n)
    if min(old.n, new.n) < drift.min_values:
        side = "reference" if old.n < drift.min_values else "current data"
        _unjudged(verdict, f"only {min(old.n, new.n)} values in the {side}; {drift.min_values} are needed")
        return
    for side, state in (("reference", old), ("current data", new)):
        distinct = len(state.counts)
        crowded = state.error > 0 and (not asked or state.error > 0.005 * state.n or state.other > 0.5 * state.n)
        if crowded or (not asked and distinct > 2 and distinct > drift.unique_share * state.n):
            shown = f"more than {state.cap}" if state.error else str(distinct)
            hint = "group them first" if asked else "name the column as categorical to have it judged"
            _unjudged(verdict, f"{shown} distinct texts in {state.n} rows of the {side}: taken for text or ids; {hint}")
            return
    _, (before, now) = aligned((old, new))
    before, now = null.pooled(np.append(before, old.other), np.append(now, new.other))
    verdict.psi, verdict.js = summary.psi(before, now), summary.jensen_shannon(before, now)
    verdict.tests.append(ColumnTest("categories", null.chi_square_p(before, now)))
    if old.error == 0:
        hits = sum(count for key, count in new.counts.items() if key not in old.counts)
        verdict.unseen = hits / new.n
        once = sum(count == 1 for count in old.counts.values())
        verdict.tests.append(ColumnTest("unseen", null.unseen_p(hits, new.n, once, old.n)))


def _permute(verdict: ColumnVerdict, reference: Profile, current: Profile, drift: Drift, total: int) -> None:
    """Fill in the p-value of the Wasserstein test, where the effect matters and KS alone does not settle it."""
    test = next((t for t in verdict.tests if t.name == "wasserstein"), None)
    if test is None or not _matters(verdict, drift):
        return
    level = drift.level / max(1, total)
    if next(t.p for t in verdict.tests if t.name == "ks") <= level:
        return
    old, new = reference.columns[verdict.name].grid, current.columns[verdict.name].grid
    assert old is not None and new is not None
    test.p = null.wasserstein_p(old, new, level, drift.max_draws, zlib.crc32(verdict.name.encode()))


def _matters(verdict: ColumnVerdict, drift: Drift) -> bool:
    moved = verdict.moved
    far = verdict.firm is not None and verdict.firm >= drift.ks
    return far or (moved is not None and moved >= drift.wasserstein)


def _reasons(verdict: ColumnVerdict, drift: Drift) -> Iterator[str]:
    sure = verdict.adjusted("ks", "wasserstein") <= drift.level
    if sure and _matters(verdict, drift):
        yield "distribution"
    if verdict.js is not None and verdict.js >= drift.js and verdict.adjusted("categories") <= drift.level:
        yield "categories"
    if verdict.unseen and verdict.unseen >= drift.unseen_share and verdict.adjusted("unseen") <= drift.level:
        yield "unseen"
    for name, (before, now), floor in (
        ("missing", verdict.missing, drift.missing_change),
        ("infinite", verdict.infinite, drift.infinite_change),
    ):
        if abs(now - before) >= floor and verdict.adjusted(name) <= drift.level:
            yield name
