"""Covariate shift and the drift monitor: estimates against the truth, false alarms, power, delays, costs.

    python benchmarks/shift.py                     # every section, some minutes
    python benchmarks/shift.py --section tiers     # one of them
    python benchmarks/shift.py --fast              # few repetitions, to see that it runs
    python benchmarks/shift.py --json shift.json

Data are drawn here, so the truth is known. Times are medians of interleaved rounds in one process.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import facts, machine, progress, table

from osler.core.settings import Settings
from osler.data.drift.monitor import DriftMonitor
from osler.data.drift.sequential import SequentialTest, split
from osler.data.shift import Gate, ShiftMonitor, Tier, fourier, kernel
from osler.data.shift.reference import Reference
from osler.data.shift.whole import compare

SHIFT = Settings().shift
Rows = list[list[str]]
Section = tuple[str, list[str], Rows]


def names(d: int) -> tuple[str, ...]:
    return tuple(map(str, range(d)))


def interleaved(rounds: int, **runs: Callable[[], object]) -> dict[str, float]:
    """Median seconds of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in times.items()}


def mmd(fast: bool) -> Section:
    """MMD, exact against random features: error and time."""
    rows: Rows = []
    for n, d, moved in ((2000, 64, 0.05), (20_000, 64, 0.05), (20_000, 64, 0.02)):
        if fast and n > 2000:
            continue
        rng = np.random.default_rng(0)
        x = rng.standard_normal((n, d)).astype(np.float32)
        y = (rng.standard_normal((n, d)) + moved).astype(np.float32)
        h = kernel.median_bandwidth(y)
        exact = kernel.mmd_squared(x, y, h)
        errors = []
        for seed in range(8):
            random = fourier.FourierFeatures(d, SHIFT.random_features, h, seed)
            errors.append(abs(fourier.mmd_squared(random.sum(x), random.sum(y)) / exact - 1))
        random = fourier.FourierFeatures(d, SHIFT.random_features, h)

        def by_features(random: fourier.FourierFeatures = random, x: np.ndarray = x, y: np.ndarray = y) -> float:
            return fourier.mmd_squared(random.sum(x), random.sum(y))

        took = interleaved(
            1 if fast else 2,
            exact=lambda x=x, y=y, h=h: kernel.mmd_squared(x, y, h),
            features=by_features,
        )
        rows.append(
            [
                f"{n:,} × {d}, each mean moved by {moved} sd",
                f"{exact:.2e}",
                f"{kernel.distance(exact):.4f}",
                f"{100 * statistics.median(errors):.1f} %",
                f"{100 * max(errors):.1f} %",
                f"{took['exact']:.2f}",
                f"{took['features']:.3f}",
                f"{took['exact'] / took['features']:.1f}×",
            ]
        )
    head = ["rows × features", "MMD²", "MMD", "error (median of 8)", "largest", "exact s", "features s", "ratio"]
    return "MMD², exact against 1,024 random features", head, rows


def kl(fast: bool) -> Section:
    """KL estimates, with the null's mean taken off, against the analytic value."""
    rows: Rows = []
    repeats = 1 if fast else 3
    for d in (2, 8, 32):
        for what in ("mean", "spread", "correlation"):
            found: list[list[float]] = []
            truth = 0.0
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                reference, current = rng.standard_normal((2, 4000, d))
                if what == "mean":
                    current[:, 0] += 0.6
                    truth = 0.18
                elif what == "spread":
                    current[:, 0] *= 1.6
                    truth = 0.5 * (1.6**2 - 1 - 2 * np.log(1.6))
                else:
                    current[:, 1] = 0.6 * current[:, 0] + 0.8 * current[:, 1]
                    truth = -0.5 * np.log(1 - 0.36)
                fitted = Reference.fit(reference, names(d), SHIFT)
                scaled = [fitted.scaler.apply(side)[:2000] for side in (current, reference)]
                found.append([s.value for s in compare(*scaled, fitted, 0.01)[:2]])
            middle = np.median(found, axis=0)
            rows.append([f"{d}", what, f"{truth:.3f}", f"{middle[0]:.3f}", f"{middle[1]:.3f}"])
    return (
        "KL in nats, 2,000 against 2,000 rows",
        ["features", "moved", "truth", "Gaussian", "nearest neighbours"],
        rows,
    )


def drawer(kind: str, d: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    mixing = np.random.default_rng(99).standard_normal((d, d)) / np.sqrt(d) + 0.5 * np.eye(d)

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        if kind == "independent":
            return rng.standard_normal((n, d))
        if kind == "correlated":
            return rng.standard_normal((n, d)) @ mixing
        if kind == "t, 3 degrees":
            return rng.standard_t(3, (n, d))
        return np.exp(rng.standard_normal((n, d)) @ mixing)

    return draw


def tiers(fast: bool) -> Section:
    """False alarms of the tiers on identical data at windows of 1,000."""
    rows: Rows = []
    references, windows = (1, 20) if fast else (4, 50)
    for kind in ("independent", "correlated", "t, 3 degrees", "lognormal"):
        for d in (8, 64, 256):
            draw = drawer(kind, d)
            count = alerts = freezes = bare = 0
            typical: list[float] = []
            for seed in range(references if d < 256 else max(1, references // 2)):
                rng = np.random.default_rng(seed)
                fitted = Reference.fit(draw(rng, 10_000), names(d), SHIFT, seed=seed)
                limits = fitted.thresholds()
                for _ in range(windows):
                    state = fitted.of(draw(rng, 1000))
                    shift = fitted.judge(state, limits)
                    count += 1
                    alerts += shift.tier >= Tier.ALERT
                    freezes += shift.tier >= Tier.FREEZE
                    bare += fitted.whitener.kl(state.moments) >= SHIFT.kl_freeze
                    typical.append(shift.mmd)
            rows.append(
                [
                    kind,
                    f"{d}",
                    f"{count}",
                    f"{100 * alerts / count:.1f} %",
                    f"{100 * freezes / count:.1f} %",
                    f"{100 * bare / count:.0f} %",
                    f"{fitted.kl_null.mean:.2f}",
                    f"{limits[0].alert:.3f}",
                    f"{np.quantile(typical, 0.9):.4f}",
                    f"{limits[1].alert:.3f}",
                ]
            )
            progress(f"tiers: {kind}, {d}")
    head = [
        "features",
        "d",
        "windows",
        "alert",
        "freeze",
        "raw KL ≥ 0.15",
        "null KL",
        "KL alert",
        "MMD, 9 in 10 below",
        "MMD alert",
    ]
    return "False alarms on identical data, windows of 1,000, level 1 %", head, rows


def power(fast: bool) -> Section:
    """How often a shift reaches the tiers, in one window of 1,000 rows."""
    rows: Rows = []
    windows = 5 if fast else 40
    for d in (8, 64):
        rng = np.random.default_rng(d)
        fitted = Reference.fit(rng.standard_normal((10_000, d)), names(d), SHIFT)
        limits = fitted.thresholds()

        def moved(kind: str, size: float, d: int = d, rng: np.random.Generator = rng) -> np.ndarray:
            x = rng.standard_normal((1000, d))
            if kind == "one mean":
                x[:, 0] += size
            elif kind == "all means":
                x += size / np.sqrt(d)
            elif kind == "all spreads":
                x *= size
            elif kind == "a pair's correlation":
                x[:, 1] = size * x[:, 0] + np.sqrt(1 - size * size) * x[:, 1]
            else:
                far = rng.random(1000) < size
                x[far] += 3 / np.sqrt(d)
            return x

        for kind, sizes in (
            ("one mean", (0.2, 0.4, 0.8)),
            ("all means", (0.2, 0.4, 0.8)),
            ("all spreads", (1.05, 1.2)),
            ("a pair's correlation", (0.3, 0.6)),
            ("a share of rows 3 sd away", (0.05, 0.2)),
        ):
            for size in sizes:
                seen = [fitted.judge(fitted.of(moved(kind, size)), limits) for _ in range(windows)]
                by_kl = sum(limits[0].tier(s.kl) > Tier.SILENT for s in seen)
                by_mmd = sum(limits[1].tier(s.mmd) > Tier.SILENT for s in seen)
                either = sum(s.tier > Tier.SILENT for s in seen)
                freeze = sum(s.tier is Tier.FREEZE for s in seen)
                shares = [f"{100 * k / windows:.0f} %" for k in (either, freeze, by_kl, by_mmd)]
                rows.append([f"{kind}, {size}", f"{d}", *shares])
    return "Power, one window of 1,000 rows", ["shift", "d", "alert or more", "freeze", "by KL", "by MMD"], rows


def monitor(fast: bool) -> Section:
    """Overlapping judgements of `ShiftMonitor`, with the floors taken away so that only the calibration is left."""
    rows: Rows = []
    bare = dataclasses.replace(SHIFT, kl_alert=1e-9, mmd_alert=1e-9, kl_freeze=1.0, mmd_freeze=1.0, level=0.05)
    settings = dataclasses.replace(Settings(), shift=bare)
    lengths = 20 if fast else 100
    for every in (1000, 500, 100):
        rng = np.random.default_rng(1)
        judged = alarmed = spans = hit = 0
        for seed in range(1 if fast else 3):
            rng = np.random.default_rng(seed)
            watch = ShiftMonitor(rng.standard_normal((10_000, 8)), every=every, settings=settings)
            watch.update(rng.standard_normal((1000, 8)))
            for _ in range(lengths):
                risen = []
                for _ in range(1000 // every):
                    risen.append(watch.update(rng.standard_normal((every, 8))) > Tier.SILENT)
                judged += len(risen)
                alarmed += sum(risen)
                spans += 1
                hit += any(risen)
        rows.append([f"{every}", f"{judged}", f"{100 * alarmed / judged:.1f} %", f"{100 * hit / spans:.1f} %"])
    head = ["a judgement every", "judgements", "alarms a judgement", "an alarm within 1,000 rows"]
    return "Overlap in ShiftMonitor: no floors, level 5 %, identical data of 8 features", head, rows


def runs(fast: bool) -> Section:
    """What a run of windows buys in `DriftMonitor`, with the effect floors taken away."""
    tree = Settings()
    drift = dataclasses.replace(tree.drift, ks=0.0, wasserstein=0.0, rounding=0.0, level=0.2)
    rows: Rows = []
    total = 20_000 if fast else 200_000
    for every, disjoint in ((500, False), (250, False), (50, False), (50, True)):
        watched = dataclasses.replace(tree.monitor, disjoint=disjoint)
        settings = dataclasses.replace(tree, drift=drift, monitor=watched)
        rng = np.random.default_rng(0)
        watch = DriftMonitor({"x": rng.standard_normal(200_000)}, window=500, every=every, settings=settings)
        judged = alarms = 0
        triggers: list[int] = []
        watch.on_resample = lambda event, triggers=triggers: triggers.append(event.window.index)
        rows_here = total if every > 50 else total // 4
        for start in range(0, rows_here, 10_000):
            del start
            for verdict in watch.update({"x": rng.standard_normal(10_000)}):
                judged += 1
                alarms += bool(verdict.drifted)
        p = alarms / judged
        lengths = rows_here / 500
        rows.append(
            [
                f"{every}{', disjoint' if disjoint else ''}",
                f"{judged}",
                f"{100 * p:.1f} %",
                f"{100 * p**3:.2f} %",
                f"{100 * len(triggers) / judged:.2f} %",
                f"{100 * len(triggers) / lengths:.1f}",
            ]
        )
        progress(f"runs: every {every}")
    head = [
        "a window of 500 every",
        "windows",
        "drift by chance p",
        "p³",
        "triggers a window",
        "triggers per 100 lengths",
    ]
    return "Runs of three: no effect floors, level 20 %, identical data", head, rows


def sequential(fast: bool) -> Section:
    """False alarms over whole sequences, and the delay after a change."""
    rows: Rows = []
    sequences = 20 if fast else 300
    kinds: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
        "normal": lambda rng, n: rng.standard_normal(n),
        "Cauchy": lambda rng, n: rng.standard_cauchy(n),
        "three values": lambda rng, n: rng.integers(0, 3, n).astype(float),
    }
    for kind, draw in kinds.items():
        peaks = []
        for seed in range(sequences):
            rng = np.random.default_rng(seed)
            binning, urn = split(draw(rng, 2000), seed=seed)
            test = SequentialTest(urn, seed=seed)
            for _ in range(20):
                test.update(binning.symbols(draw(rng, 250)))
            peaks.append(test.log_peak)
        shares = [f"{100 * np.mean(np.array(peaks) >= -np.log(alpha)):.1f} %" for alpha in (0.5, 0.1, 0.01)]
        rows.append([f"{kind}, {sequences} sequences of 5,000 rows", *shares, "", ""])
    for moved in (0.2, 0.5, 1.0):
        delays = []
        for seed in range(4 if fast else 20):
            rng = np.random.default_rng(seed)
            binning, urn = split(rng.standard_normal(20_000), seed=seed)
            test = SequentialTest(urn, seed=seed)
            test.update(binning.symbols(rng.standard_normal(20_000)))
            seen = 0
            while not test.crossed(0.01) and seen < 20_000:
                test.update(binning.symbols(rng.standard_normal(25) + moved))
                seen += 25
            delays.append(seen)
        rng = np.random.default_rng(0)
        watch = DriftMonitor({"x": rng.standard_normal(20_000)}, window=1000)
        watch.update({"x": rng.standard_normal(20_000)})
        seen = 0
        while not watch.resample and seen < 20_000:
            watch.update({"x": rng.standard_normal(250) + moved})
            seen += 250
        run = f"{seen:,}" if watch.resample else "never"
        rows.append(
            [f"mean moved by {moved} sd after 20,000 rows", "", "", "", f"{statistics.median(delays):.0f}", run]
        )
    head = ["", "ever ≥ 1/0.5", "ever ≥ 1/0.1", "ever ≥ 1/0.01", "delay at 0.01, rows", "delay of 3 windows of 1,000"]
    return "The sequential test", head, rows


def gate(fast: bool) -> Section:
    """What a service pays to ask the gate, and to update the monitors."""
    door = Gate()
    count = 10_000 if fast else 1_000_000

    def asked() -> None:
        for _ in range(count):
            if door.open:
                pass

    def empty() -> None:
        for _ in range(count):
            pass

    asking, looping = (min(timeit.repeat(run, number=1, repeat=9)) for run in (asked, empty))
    rows: Rows = [["if gate.open: (the least of 9)", f"{(asking - looping) / count * 1e9:.0f} ns", "9"]]
    rng = np.random.default_rng(0)
    for d in (64, 256):
        watch = ShiftMonitor(rng.standard_normal((4000, d)).astype(np.float32))
        batch = rng.standard_normal((100, d)).astype(np.float32)
        watch.update(np.tile(batch, (10, 1)))
        one = interleaved(20, update=lambda watch=watch, batch=batch: watch.update(batch))["update"]
        rows.append([f"ShiftMonitor.update, 100 rows × {d}, judged each time", f"{one * 1e3:.2f} ms", "20"])
    data = {f"c{i}": rng.standard_normal(50_000) for i in range(20)}
    few = {name: values[:1000] for name, values in data.items()}
    counting = DriftMonitor(data, window=10**9)
    judging = DriftMonitor(data, window=10_000, every=1000)
    judging.update(data)
    took = interleaved(10, counting=lambda: counting.update(few), judging=lambda: judging.update(few))
    rows.append(["DriftMonitor.update, 1,000 rows × 20, counted", f"{took['counting'] * 1e3:.2f} ms", "10"])
    rows.append(
        ["DriftMonitor.update, the same, a window of 10,000 judged each time", f"{took['judging'] * 1e3:.2f} ms", "10"]
    )
    return "What it costs", ["", "median", "rounds"], rows


SECTIONS = {f.__name__: f for f in (mmd, kl, tiers, power, monitor, runs, sequential, gate)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS))
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    about = machine()
    out: dict[str, object] = {"machine": about}
    print(facts(about))
    for name in args.section or SECTIONS:
        progress(name)
        title, head, rows = SECTIONS[name](args.fast)
        print(f"\n## {title}\n\n{table(head, rows)}", flush=True)
        out[name] = {"title": title, "columns": head, "rows": rows}
    if args.json:
        args.json.write_text(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
