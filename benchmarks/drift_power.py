"""False alarms on identical data, and power against shifts that matter, beside Evidently's defaults and scipy's KS test.

    python benchmarks/drift_power.py [--repeats 80] [--json FILE]

A reference of 20,000 rows is compared with windows of 200, 1,000 and 10,000 rows. An alarm is any finding of
`check_drift` (its `compare`), for scipy any p < 0.05 of `ks_2samp` (χ² for categories), for Evidently its documented
defaults (docs.evidentlyai.com, data drift algorithm): for a reference of more than 1,000 rows the Wasserstein distance
over the reference's standard deviation, 0.1 or more, and the Jensen–Shannon distance, 0.1 or more; for up to 1,000 rows
p < 0.05 of the KS test and of χ². Both are computed here as documented, so that Evidently need not be installed.

The features of a table of 50 depend on each other (six factors). `limits alone` is KS ≥ 0.15 or Wasserstein ≥ 0.08
spreads without any test. `osler of 50` judges the column at the level that it has as one of 50 features, before the first
rejection.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import common
import numpy as np

from osler.core.settings import Drift, Settings
from osler.data.drift import Profile, build_profile, compare
from osler.data.drift.judge import DRIFT, ColumnVerdict

WINDOWS = (200, 1_000, 10_000)
REFERENCE = 20_000
Draw = Callable[[np.random.Generator, int], np.ndarray]

LAWS: dict[str, Draw] = {
    "normal": lambda r, n: r.normal(size=n),
    "log-normal, σ = 2": lambda r, n: r.lognormal(0, 2, n),
    "Cauchy": lambda r, n: r.standard_cauchy(n),
    "Poisson, mean 1": lambda r, n: r.poisson(1, n).astype(float),
    "90 % zeros": lambda r, n: np.where(r.random(n) < 0.9, 0.0, r.lognormal(0, 1, n)),
    "8 categories": lambda r, n: categories(r, n, 0.0),
}

SHIFTS: dict[str, tuple[Draw, Draw]] = {
    "mean + 0.1 σ": (LAWS["normal"], lambda r, n: r.normal(0.1, 1, n)),
    "mean + 0.2 σ": (LAWS["normal"], lambda r, n: r.normal(0.2, 1, n)),
    "mean + 0.5 σ": (LAWS["normal"], lambda r, n: r.normal(0.5, 1, n)),
    "scale × 1.2": (LAWS["normal"], lambda r, n: r.normal(0, 1.2, n)),
    "scale × 1.5": (LAWS["normal"], lambda r, n: r.normal(0, 1.5, n)),
    "3 % at 6 σ": (LAWS["normal"], lambda r, n: np.where(r.random(n) < 0.03, 6.0, r.normal(size=n))),
    "10 % at 6 σ": (LAWS["normal"], lambda r, n: np.where(r.random(n) < 0.1, 6.0, r.normal(size=n))),
    "category 10 points": (LAWS["8 categories"], lambda r, n: categories(r, n, 0.10)),
    "category 20 points": (LAWS["8 categories"], lambda r, n: categories(r, n, 0.20)),
}


def categories(rng: np.random.Generator, rows: int, moved: float) -> np.ndarray:
    """Eight categories; `moved` of the first one's share goes to the last."""
    shares = np.array([0.4, 0.2, 0.12, 0.1, 0.08, 0.05, 0.03, 0.02])
    shares[0] -= moved
    shares[-1] += moved
    return np.array([f"c{i}" for i in range(8)])[rng.choice(8, rows, p=shares)]


def judged(reference: Profile, window: np.ndarray, settings: Settings) -> list[ColumnVerdict]:
    columns = {"v": window} if window.ndim == 1 else {str(i): window[:, i] for i in range(window.shape[1])}
    return compare(reference, build_profile(columns, profile_of=reference), settings)


def alarm(verdicts: list[ColumnVerdict]) -> bool:
    return any(v.verdict == DRIFT for v in verdicts)


def beyond_limits(verdict: ColumnVerdict, drift: Drift) -> bool:
    if verdict.js is not None:
        return verdict.js >= drift.js
    moved = verdict.moved or 0.0
    return (verdict.ks is not None and verdict.ks.low >= drift.ks) or moved >= drift.wasserstein


def scipys(reference: np.ndarray, window: np.ndarray) -> bool:
    from scipy import stats

    if reference.dtype.kind != "U":
        return bool(stats.ks_2samp(reference, window, method="asymp").pvalue < 0.05)
    table = counts(reference, window)
    return bool(stats.chi2_contingency(table[:, table.sum(axis=0) > 0], correction=False).pvalue < 0.05)


def evidentlys(reference: np.ndarray, window: np.ndarray) -> bool:
    """The default for a reference of more than 1,000 rows."""
    from scipy import stats
    from scipy.spatial.distance import jensenshannon

    if reference.dtype.kind != "U":
        return bool(stats.wasserstein_distance(reference, window) / max(np.std(reference), 0.001) >= 0.1)
    table = counts(reference, window)
    return bool(jensenshannon(table[0] / table[0].sum(), table[1] / table[1].sum(), base=2) >= 0.1)


def counts(reference: np.ndarray, window: np.ndarray) -> np.ndarray:
    names = np.unique(np.concatenate((reference, window)))
    return np.stack([[np.count_nonzero(side == name) for name in names] for side in (reference, window)])


def rates(before: Draw, now: Draw, window: int, repeats: int, seed: int) -> list[float]:
    """Shares of alarms: osler, osler of 50, limits alone, scipy, Evidently."""
    rng = np.random.default_rng(seed)
    one = Settings()
    of_fifty = replace(one, drift=replace(one.drift, level=one.drift.level / 50))
    hits = np.zeros(5)
    for _ in range(repeats):
        reference, values = before(rng, REFERENCE), now(rng, window)
        profile = build_profile({"v": reference}, edges=4096)
        found = judged(profile, values, one)
        hits += [
            alarm(found),
            alarm(judged(profile, values, of_fifty)),
            beyond_limits(found[0], one.drift),
            scipys(reference, values),
            evidentlys(reference, values),
        ]
    return list(hits / repeats)


def fifty(window: int, repeats: int, seed: int) -> list[float]:
    """Shares of tables of 50 dependent features with any alarm."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(6, 50))

    def draw(rows: int) -> np.ndarray:
        return rng.normal(size=(rows, 6)) @ mix + 0.5 * rng.normal(size=(rows, 50))

    settings = Settings()
    hits = np.zeros(4)
    for _ in range(repeats):
        reference, values = draw(REFERENCE), draw(window)
        profile = build_profile(reference, edges=4096)
        found = judged(profile, values, settings)
        hits += [
            alarm(found),
            any(beyond_limits(v, settings.drift) for v in found),
            any(scipys(reference[:, i], values[:, i]) for i in range(50)),
            any(evidentlys(reference[:, i], values[:, i]) for i in range(50)),
        ]
    return list(hits / repeats)


def cells(found: list[float]) -> list[str]:
    return [f"{100 * share:.1f} %" for share in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--repeats", type=int, default=80, help="windows per figure; a quarter of that for 50 features and for shifts"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        import scipy  # noqa: F401
    except ImportError:
        print("scipy is not installed: skipped")
        return
    facts = common.machine()
    records: list[dict[str, object]] = []

    def line(kind: str, name: str, window: int, found: list[float]) -> list[str]:
        records.append({"table": kind, "row": name, "window": window, "shares": found})
        common.progress(f"{kind}: {name}, {window}")
        return [name, f"{window:,}", *cells(found)]

    same = [
        line("false alarms", name, window, rates(law, law, window, args.repeats, 1))
        for name, law in LAWS.items()
        for window in WINDOWS
    ]
    table = [
        line("50 features", "50 dependent normal", window, fifty(window, max(3, args.repeats // 4), 2))
        for window in WINDOWS
    ]
    power = [
        line("power", name, window, rates(before, now, window, max(3, args.repeats // 4), 3))
        for name, (before, now) in SHIFTS.items()
        for window in WINDOWS
    ]
    header = ["window", "osler", "osler of 50", "limits alone", "scipy p < 0.05", "Evidently default"]
    print(common.facts(facts))
    print(f"\nFalse alarms on identical data, {args.repeats} windows each:\n")
    print(common.table(["column", *header], same))
    print(f"\nTables with any false alarm, {max(3, args.repeats // 4)} each:\n")
    print(common.table(["table", "window", "osler", "limits alone", "scipy p < 0.05", "Evidently default"], table))
    print(f"\nAlarms on shifted data, {max(3, args.repeats // 4)} windows each:\n")
    print(common.table(["shift", *header], power))
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "rows": records}, indent=1))


if __name__ == "__main__":
    main()
