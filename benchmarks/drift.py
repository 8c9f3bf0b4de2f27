"""Drift of one column, 1M against 1M float64: CPU time of Kolmogorov–Smirnov and Wasserstein, side by side.

    python benchmarks/drift.py [--rows 1000000] [--rounds 7] [--json FILE]

Everything is measured in one process, in turn, round by round; figures are medians of the CPU time, ratios are taken
within a round. Rows of the table:

- osler, edges given: both samples are counted over the edges, both brackets are taken.
- osler, with edges: the edges are made from the reference first.
- osler, stored reference: the reference's state is there already, only the current sample is counted.
- scipy: ks_2samp (asymptotic p-value) and wasserstein_distance.
- Evidently, both: a report of `ValueDrift(method="ks")` and `ValueDrift(method="wasserstein")`; and its default preset,
  which computes Wasserstein alone at this size. Left out where Evidently is not installed.

A line says what a stored profile takes. The second table gives the brackets against the exact values for columns of several shapes.
"""

from __future__ import annotations

import argparse
import functools
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import common
import numpy as np

from osler.data.drift.brackets import distances
from osler.data.drift.edges import STORED, make_edges
from osler.data.drift.grid import Edges, Grid
from osler.data.drift.profile import build_profile

SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "log-normal, σ = 3": lambda rng, n: rng.lognormal(0, 3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "Poisson, mean 100": lambda rng, n: rng.poisson(100, n).astype(float),
    "half zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
    "one value of 1e7": lambda rng, n: np.where(np.arange(n) == 0, 1e7, rng.normal(size=n)),
}


def cpu(work: Callable[[], object]) -> float:
    """CPU milliseconds of one call."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def osler_pair(reference: np.ndarray, current: np.ndarray, edges: Edges) -> None:
    first, second = Grid(edges).update(reference), Grid(edges).update(current)
    distances(first, second)


def contenders(reference: np.ndarray, current: np.ndarray) -> dict[str, Callable[[], object]]:
    """Name → one whole comparison."""
    edges = make_edges(reference)
    stored = Grid(edges).update(reference)

    def against_stored() -> None:
        now = Grid(edges).update(current)
        distances(stored, now)

    found: dict[str, Callable[[], object]] = {
        "osler, edges given": lambda: osler_pair(reference, current, edges),
        "osler, with edges": lambda: osler_pair(reference, current, make_edges(reference)),
        "osler, stored reference": against_stored,
    }
    try:
        from scipy import stats
    except ImportError:
        common.progress("scipy is not installed: skipped")
    else:
        found["scipy"] = lambda: (
            stats.ks_2samp(reference, current, method="asymp"),
            stats.wasserstein_distance(reference, current),
        )
    found.update(evidently(reference, current))
    return found


def evidently(reference: np.ndarray, current: np.ndarray) -> dict[str, Callable[[], object]]:
    """Evidently's reports of one column; empty where it cannot be imported."""
    try:
        import pandas as pd
        from evidently import Report
        from evidently.metrics import ValueDrift
        from evidently.presets import DataDriftPreset
    except ImportError as error:
        common.progress(f"Evidently cannot be imported ({error}): skipped")
        return {}
    before, now = pd.DataFrame({"x": reference}), pd.DataFrame({"x": current})
    both = [ValueDrift(column="x", method="ks"), ValueDrift(column="x", method="wasserstein")]
    return {
        "Evidently, both": lambda: Report(both).run(now, before),
        "Evidently, preset": lambda: Report([DataDriftPreset()]).run(now, before),
    }


def speed(rows: int, rounds: int) -> tuple[str, dict[str, list[float]]]:
    rng = np.random.default_rng(0)
    reference, current = rng.normal(size=rows), rng.normal(0.05, 1, rows)
    found = contenders(reference, current)
    times: dict[str, list[float]] = {name: [] for name in found}
    for turn in range(rounds + 1):
        for name, work in found.items():
            slow = name.startswith("Evidently")
            if slow and turn > max(2, rounds // 3):
                continue
            spent = cpu(work)
            if turn:  # the first round compiles and warms up
                times[name].append(spent)
        common.progress(f"round {turn} of {rounds}")
    lines = []
    for name, spent in times.items():
        cells = [name, f"{np.median(spent):.1f}"]
        for base in ("osler, edges given", "osler, with edges", "osler, stored reference"):
            ratio = np.median([a / b for a, b in zip(spent, times[base])])
            cells.append(f"{ratio:.2f}" if name.startswith("osler") else f"{ratio:.0f}")
        lines.append(cells)
    header = ["", "CPU ms", "/ edges given", "/ with edges", "/ stored reference"]
    return common.table(header, lines), times


def accuracy(rows: int) -> tuple[str, list[dict[str, object]]]:
    try:
        from scipy import stats
    except ImportError:
        return "scipy is not installed: no exact values", []
    lines, records = [], []
    for name, draw in SHAPES.items():
        rng = np.random.default_rng(1)
        reference, current = draw(rng, rows), draw(rng, rows)
        edges = make_edges(reference)
        first = Grid(edges).update(reference)
        spent = cpu(functools.partial(Grid(edges).update, current))
        second = Grid(edges).update(current)
        exact = (
            float(stats.ks_2samp(reference, current, method="asymp").statistic),
            float(stats.wasserstein_distance(reference, current)),
        )
        found = distances(first, second)
        inside = all(b.low * (1 - 1e-12) <= e <= b.high * (1 + 1e-12) for b, e in zip(found, exact))
        lines.append(
            [
                name,
                f"{spent:.1f}",
                *(text for b, e in zip(found, exact) for text in (f"{e:.4g}", f"{b.low:.4g}–{b.high:.4g}")),
                "yes" if inside else "NO",
            ]
        )
        records.append({"shape": name, "ms": spent, "exact": exact, "brackets": found, "inside": inside})
        common.progress(name)
    header = ["column", "ms to count 1M", "KS", "bracket", "W", "bracket", "holds"]
    return common.table(header, lines), records


def stored(rows: int, columns: int = 20) -> str:
    """What a profile takes on disk."""
    rng = np.random.default_rng(0)
    frame = {f"x{i}": rng.normal(size=rows) for i in range(columns)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.profile"
        build_profile(frame).save(path)
        return f"A profile of {STORED} edges takes {path.stat().st_size / 1000 / columns:.1f} KB a feature."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    facts = common.machine()
    fast, times = speed(args.rows, args.rounds)
    exact, records = accuracy(args.rows)
    print(common.facts(facts), fast, stored(args.rows), exact, sep="\n\n")
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "cpu_ms": times, "accuracy": records}, indent=1))


if __name__ == "__main__":
    main()
