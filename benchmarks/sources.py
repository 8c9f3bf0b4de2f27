"""Sources that must line up: time and memory, accuracy of offset and drift, false alarms, the as-of join beside its peers.

    python benchmarks/sources.py                  # everything: 10 million rows a side, 200 trials; about five minutes
    python benchmarks/sources.py --rows 1000000 --trials 50
    python benchmarks/sources.py --lags           # heights of chance peaks: unrelated streams of events
    python benchmarks/sources.py --json FILE

Time and memory are those of one child process a row; the joins are interleaved and compared in pairs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))
from common import facts, machine, progress, ratio_of_totals, table

S = 1_000_000_000
BASE = 1_704_067_200 * S
ROUNDS = 5
KEEP = 0.8


def instants(ns: np.ndarray) -> pa.Array:
    return pa.array(ns, pa.timestamp("ns", "UTC"))


def events(rng: np.random.Generator, n: int, days: float) -> np.ndarray:
    return np.sort(BASE + rng.integers(0, int(days * 86_400 * S), n))


def large(rows: int, form: str) -> list[pa.Table]:
    """Two sources of one set of events: shuffled ids, 3 % of the right side missing, jitter of 50 ms."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(rows)
    seen = events(rng, rows, 30)
    keep = rng.random(rows) > 0.03
    right = seen[keep] + (rng.normal(0, 0.05, int(keep.sum())) * S).astype(np.int64)
    left_ids, right_ids = pa.array(ids), pa.array(ids[keep])
    if form == "text ids":
        left_ids, right_ids = left_ids.cast(pa.string()), right_ids.cast(pa.string())
    tables = [pa.table({"id": left_ids, "t": instants(seen)}), pa.table({"id": right_ids, "t": instants(right)})]
    return [t.select(["t"]) for t in tables] if form == "no ids" else tables


def _child(work: Callable[..., Any], arguments: tuple[Any, ...], pipe: Any) -> None:
    pipe.send(work(*arguments))


def apart(work: Callable[..., Any], *arguments: Any) -> Any:
    """In a process of its own, so that memory is its own."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    child = multiprocessing.get_context("spawn").Process(target=_child, args=(work, arguments, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    finally:
        child.join()


def peak() -> float:
    """The most memory that this process has held, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def check_once(rows: int, form: str) -> dict[str, float]:
    from osler.data.sources import check_sources

    options: dict[str, Any] = {"time": "t", "tolerance": "500ms"} | ({} if form == "no ids" else {"id": "id"})
    check_sources([t.slice(0, 1000) for t in large(2000, form)], **options)
    tables = large(rows, form)
    before, start, busy = peak(), time.perf_counter(), time.process_time()
    report = check_sources(tables, **options)
    assert not [f for f in report.findings if f.severity >= 2], report.findings
    return {"s": time.perf_counter() - start, "cpu_s": time.process_time() - busy, "before": before, "peak": peak()}


def join_rounds(rows: int) -> dict[str, list[float]]:
    """Seconds of each join, interleaved."""
    import polars as pl

    from osler.data.sources import asof_join

    rng = np.random.default_rng(1)
    left = pl.DataFrame({"t": events(rng, rows, 30), "x": rng.random(rows)}).with_columns(
        pl.col("t").cast(pl.Datetime("ns"))
    )
    right = pl.DataFrame({"t": np.unique(events(rng, rows, 30)), "y": 1.0}).with_columns(
        pl.col("t").cast(pl.Datetime("ns"))
    )
    runs: dict[str, Callable[[], object]] = {
        "osler.asof_join (polars)": lambda: asof_join(left, right, on="t", tolerance="1min"),
        "polars join_asof": lambda: left.join_asof(right, on="t", tolerance="1m"),
    }
    try:
        import pandas as pd

        a, b = (pd.DataFrame({c: f[c].to_numpy() for c in f.columns}) for f in (left, right))
        runs["osler.asof_join (pandas)"] = lambda: asof_join(a, b, on="t", tolerance="1min")
        runs["pandas merge_asof"] = lambda: pd.merge_asof(a, b, on="t", tolerance=pd.Timedelta("1min"))
    except ImportError:
        progress("pandas is not installed: its join is left out")
    out: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            out[name].append(time.perf_counter() - start)
    return out


def noisy(
    rng: np.random.Generator, seen: np.ndarray, offset: float, ppm: float, jitter: float
) -> tuple[np.ndarray, np.ndarray]:
    """What a second clock sees of the events, and which of them."""
    keep = rng.random(len(seen)) < KEEP
    moments = seen[keep]
    drift = ((moments - BASE) * (ppm * 1e-6)).astype(np.int64)
    return moments + int(offset * S) + drift + (rng.normal(0, jitter, len(moments)) * S).astype(np.int64), keep


def accuracy(trials: int) -> list[list[str]]:
    """Errors of offset and drift over random clocks, and how often the interval held the truth."""
    from osler.data.sources import check_sources

    rows = []
    for n, jitter in ((300, 0.05), (5000, 0.05), (5000, 0.5), (100_000, 0.05)):
        for way in ("ids", "no ids"):
            rng = np.random.default_rng([n, int(jitter * 1000), way == "ids"])
            errors, slopes, held, found = [], [], 0, 0
            for _ in range(trials if n < 50_000 else max(10, trials // 10)):
                offset, ppm = rng.uniform(-20, 20), rng.uniform(-100, 100)
                seen = events(rng, n, 10)
                right, keep = noisy(rng, seen, offset, ppm, jitter)
                left = pa.table({"id": np.arange(n), "t": instants(seen)})
                other = pa.table({"id": np.flatnonzero(keep), "t": instants(right)})
                if way == "no ids":
                    other = other.take(np.argsort(right))
                report = check_sources([left, other], time="t", **({"id": "id"} if way == "ids" else {}))
                row = dict(zip(report.tables[1].columns, report.tables[1].rows[0]))
                if row["offset s"] is None or row["drift ppm"] is None:
                    continue
                found += 1
                shared = seen[keep]
                middle = ((shared[0] + shared[-1]) / 2 - BASE) / S
                errors.append(abs(row["offset s"] - offset - ppm * 1e-6 * middle) * 1e3)
                slopes.append(abs(row["drift ppm"] - ppm))
                held += row["drift low ppm"] <= ppm <= row["drift high ppm"]
            total = trials if n < 50_000 else max(10, trials // 10)
            q = [np.percentile(x, p) if x else float("nan") for x in (errors, slopes) for p in (50, 95)]
            rows.append(
                [f"{n:,} events, jitter {jitter * 1000:.0f} ms, {way}", f"{found}/{total}", f"{q[0]:.2f}", f"{q[1]:.2f}",
                 f"{q[2]:.3f}", f"{q[3]:.3f}", f"{held / max(1, found):.1%}"]
            )  # fmt: skip
            progress(f"accuracy: {rows[-1]}")
    return rows


def false_alarms(trials: int) -> list[list[str]]:
    """Share of healthy pairs that get a warning or an error."""
    from osler.data.sources import check_sources

    rng = np.random.default_rng(5)
    noises: dict[str, Callable[[int], np.ndarray]] = {
        "normal, 50 ms": lambda n: rng.normal(0, 0.05, n),
        "Student t with 3 degrees, 50 ms": lambda n: rng.standard_t(3, n) * 0.05,
        "exponential delay, mean 100 ms": lambda n: rng.exponential(0.1, n),
        "random walk, 5 ms a row": lambda n: np.cumsum(rng.normal(0, 0.005, n)) / max(1.0, n**0.5 / 20),
    }
    rows = []
    for name, noise in noises.items():
        for way, tolerance in (("ids", "500ms"), ("ids", None), ("no ids", "500ms")):
            alarms = 0
            for _ in range(trials):
                n = int(rng.integers(60, 3000))
                seen = events(rng, n, float(rng.uniform(0.1, 30)))
                keep = rng.random(n) > 0.03
                right = seen[keep] + (noise(n)[keep] * S).astype(np.int64)
                if way == "no ids":
                    right = np.sort(right)
                left = pa.table({"id": np.arange(n), "t": instants(seen)})
                other = pa.table({"id": np.flatnonzero(keep), "t": instants(right)})
                options: dict[str, Any] = {"time": "t", "tolerance": tolerance} | ({"id": "id"} if way == "ids" else {})
                alarms += any(f.severity >= 2 for f in check_sources([left, other], **options).findings)
            rows.append(
                [f"{name}; {way}, tolerance {tolerance or 'not given'}", f"{alarms}/{trials}", f"{alarms / trials:.1%}"]
            )
            progress(f"false alarms: {rows[-1]}")
    return rows


def lags(pairs: int = 400) -> list[list[str]]:
    """Heights of the best lag between streams that have nothing to do with each other."""
    from osler.data.sources.lags import event_lag

    rng = np.random.default_rng(9)
    heights, sure = [], 0
    for _ in range(pairs):
        n = rng.integers(50, 5000, 2)
        days = float(rng.uniform(0.2, 20))
        lag = event_lag(events(rng, int(n[0]), days), events(rng, int(n[1]), days))
        if lag.rival < 0.7:
            heights.append(lag.height)
        sure += lag.sure(10.0)
    top = max(heights, default=0.0)
    return [[f"unrelated Poisson streams, {pairs} pairs", f"{len(heights)}", f"{top:.1f}", f"{sure}"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--lags", action="store_true", help="only the chance peaks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    parts: dict[str, tuple[list[str], list[list[str]]]] = {}
    chance = ["streams", "with one clear peak", "highest of these", "taken for matched"]
    if options.lags:
        parts["Chance peaks"] = (chance, lags())
    else:
        sizes = []
        for form in ("whole-number ids", "text ids", "no ids"):
            progress(f"check_sources, {form}")
            r = apart(check_once, options.rows, form)
            sizes.append([f"{options.rows:,} against {options.rows:,} rows, {form}", f"{r['s']:.1f}", f"{r['cpu_s']:.1f}",
                          f"{r['before']:.2f}", f"{r['peak']:.2f}"])  # fmt: skip
        parts["Time and memory"] = (["check_sources", "s", "CPU s", "GiB before", "GiB at most"], sizes)
        progress("as-of joins")
        seconds = apart(join_rounds, options.rows)
        base = "pandas merge_asof" if "pandas merge_asof" in seconds else "polars join_asof"
        joins = [[n, f"{np.median(s):.2f}", ratio_of_totals(s, seconds[base]).text(".2f")] for n, s in seconds.items()]
        parts["As-of joins"] = ([f"{options.rows:,} rows a side", "s (median)", f"against {base}"], joins)
        header = ["second clock: 20 % of the events missing", "judged", "offset error ms, median", "95 %",
                  "drift error ppm, median", "95 %", "interval holds the drift"]  # fmt: skip
        parts["Accuracy"] = (header, accuracy(options.trials))
        parts["False alarms"] = (["healthy pairs: 3 % missing, noise", "alarms", "share"], false_alarms(options.trials))
        parts["Chance peaks"] = (chance, lags(max(50, options.trials)))
    print(facts(machine()))
    for name, (header, rows) in parts.items():
        print(f"\n## {name}\n\n{table(header, rows)}")
    if options.json:
        content = {name: {"columns": header, "rows": rows} for name, (header, rows) in parts.items()}
        options.json.write_text(json.dumps({"machine": machine(), **content}, indent=1))


if __name__ == "__main__":
    main()
