"""What the benchmarks share: paired statistics, facts about the machine, tables, where the programs are."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

RESAMPLES = 4000


class Estimate(NamedTuple):
    """A statistic with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def text(self, form: str = ".3f") -> str:
        """`1.032 (1.028–1.037)`."""
        return f"{self.value:{form}} ({self.low:{form}}–{self.high:{form}})"


def median_of(values: Sequence[float], seed: int = 0) -> Estimate:
    """The median, with the percentile bootstrap's interval (Efron & Tibshirani 1993, chapter 13)."""
    return _bootstrap(np.asarray(values)[:, None], lambda sample: np.median(sample[..., 0], axis=-1), seed)


def ratio_of_totals(watched: Sequence[float], bare: Sequence[float], seed: int = 0) -> Estimate:
    """Sum over sum, resampled in pairs: what happens rarely counts with its full cost, which a median would hide."""
    pairs = np.stack([np.asarray(watched), np.asarray(bare)], axis=1)
    return _bootstrap(pairs, lambda sample: sample[..., 0].sum(axis=-1) / sample[..., 1].sum(axis=-1), seed)


def _bootstrap(rows: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int) -> Estimate:
    chosen = np.random.default_rng(seed).integers(0, len(rows), size=(RESAMPLES, len(rows)))
    spread = statistic(rows[chosen])
    low, high = np.percentile(spread, [2.5, 97.5])
    return Estimate(float(statistic(rows)), float(low), float(high))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is set to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def progress(text: str) -> None:
    """One line on stderr, where the table does not go."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    """What the figures depend on: processor, cores, how busy they are, versions, date."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "date": datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "processor": _processor(),
        "cores": str(cores),
        "load average before": f"{busy:.1f}",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "torch": _installed("torch"),
        "osler": _installed("osler"),
        "command": " ".join(["python", *sys.argv]),
    }


def facts(values: Mapping[str, str]) -> str:
    """A Markdown list of them."""
    return "\n".join(f"- {name}: {value}" for name, value in values.items())


def osler() -> list[str]:
    """The command that starts osler in this environment."""
    beside = Path(sys.executable).with_name("osler")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "osler"]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return " ".join(name.split())


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
