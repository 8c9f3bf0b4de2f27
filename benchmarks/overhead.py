"""What watching costs, interleaved with other tools: `python benchmarks/overhead.py > table.md`.

Every tool is switched on and off in one process, on one model, in short blocks that alternate with bare blocks: each
watched block is compared with the mean of the bare blocks right before and right after it, so that a drift of the
machine's speed cancels. The order of the tools is drawn anew in every round; intervals are bootstrapped over rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from common import Estimate, facts, machine, median_of, progress, ratio_of_totals, table
from models import KINDS, Kind, Training

from osler.core.finding import Finding
from osler.core.settings import Settings
from osler.records.journal import Journal
from osler.training.session import Session


class Tool(Protocol):
    """Something that watches a training and can be switched on and off between steps."""

    name: str

    def on(self) -> None:
        """Begin to watch."""

    def off(self) -> None:
        """Take everything off again."""


class Heard(Journal):
    """The journal that `osler run` uses, which also remembers what came in besides curves."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.figures: dict[str, Any] = {}
        self.said: list[str] = []

    def overhead(self, figures: Mapping[str, float | int | str]) -> None:
        super().overhead(figures)
        self.figures = dict(figures)

    def finding(self, finding: Finding) -> None:
        super().finding(finding)
        self.said.append(f"{finding.severity.name.lower()} {finding.rule}")

    def note(self, text: str) -> None:
        super().note(text)
        self.said.append(text)


class Osler:
    """osler as `osler run` sets it up in the script's process, its journal in a temporary folder."""

    def __init__(self, folder: Path, budget_none: bool) -> None:
        self.name = "osler --budget none" if budget_none else "osler"
        folder.mkdir(parents=True)
        self.sink = Heard(folder)
        self._session = Session(self.sink, Settings(), {"budget_none": budget_none, "dump": False})

    def on(self) -> None:
        self._session.install()
        # The pause since the last watched step is the benchmark's doing; the governor must not take it for a long step.
        self._session.recorder._last_step_end = time.perf_counter_ns()

    def off(self) -> None:
        self._session.remove()

    def close(self) -> None:
        """Write out what is left."""
        self._session.close()


class Anomaly:
    """torch.autograd.set_detect_anomaly."""

    name = "detect_anomaly"

    def on(self) -> None:
        torch.autograd.set_detect_anomaly(True)

    def off(self) -> None:
        torch.autograd.set_detect_anomaly(False)


class IsnanHooks:
    """A forward hook on every module that looks for NaN in its output."""

    name = "isnan hooks"

    def __init__(self, training: Training) -> None:
        self._model = training.model
        self._handles: list[Any] = []

    def on(self) -> None:
        def look(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            for value in output if isinstance(output, tuple) else (output,):  # attention returns (output, None)
                if isinstance(value, torch.Tensor) and torch.isnan(value).any():
                    raise FloatingPointError(f"NaN in {type(module).__name__}")

        self._handles = [m.register_forward_hook(look) for m in self._model.modules()]

    def off(self) -> None:
        for handle in self._handles:
            handle.remove()


class ItemNorms:
    """The gradient norm of every parameter, fetched with `.item()` before each step."""

    name = "item norms"

    def __init__(self, training: Training) -> None:
        self._training = training
        self._named = list(training.model.named_parameters())
        self.norms: dict[str, float] = {}

    def on(self) -> None:
        def look(optimizer: Any, args: Any, kwargs: Any) -> None:
            for name, p in self._named:
                if p.grad is not None:
                    self.norms[name] = p.grad.norm().item()

        self._handle = self._training.optimizer.register_step_pre_hook(look)

    def off(self) -> None:
        self._handle.remove()


@dataclass
class Clock:
    """Mean wall and CPU seconds of a step over a block."""

    wall: float
    cpu: float


@dataclass
class Pairs:
    """Blocks of one tool beside the bare blocks around each."""

    watched: list[Clock] = field(default_factory=list)
    bare: list[Clock] = field(default_factory=list)

    def add(self, watched: Clock, before: Clock, after: Clock) -> None:
        """One watched block and its neighbours."""
        self.watched.append(watched)
        self.bare.append(Clock((before.wall + after.wall) / 2, (before.cpu + after.cpu) / 2))

    def wall(self) -> Estimate:
        """Median of the paired wall-time ratios."""
        return median_of([w.wall / b.wall for w, b in zip(self.watched, self.bare)])

    def cpu(self) -> Estimate:
        """Median of the paired CPU-time ratios."""
        return median_of([w.cpu / b.cpu for w, b in zip(self.watched, self.bare)])

    def total(self) -> Estimate:
        """All CPU time watched over all CPU time bare."""
        return ratio_of_totals([w.cpu for w in self.watched], [b.cpu for b in self.bare])

    def figures(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "blocks": len(self.watched),
            "wall": self.wall()._asdict(),
            "cpu": self.cpu()._asdict(),
            "cpu_total": self.total()._asdict(),
        }


def block(training: Training, steps: int) -> Clock:
    """Take that many steps."""
    step = training.step
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(steps):
        step()
    return Clock((time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps)


@contextlib.contextmanager
def watched(tool: Tool) -> Iterator[None]:
    """The tool at work; switching it on and off is not timed."""
    tool.on()
    try:
        yield
    finally:
        tool.off()


@dataclass
class Plan:
    """How much to measure.

    Attributes:
        rounds: watched blocks of each tool.
        block_s: length of a block in seconds; a block has at least two steps.
        beginnings: trainings whose first `budget.full_steps` steps are measured; none where 0.
        beginning_s: longest time that the bare steps of one row's beginnings may take together, in seconds.
        tools: names of the tools to measure.
    """

    rounds: int
    block_s: float
    beginnings: int
    beginning_s: float
    tools: list[str]


def beginnings(kind: Kind, written: bool, plan: Plan, folder: Path, full_steps: int, step_s: float) -> Pairs | None:
    """The first steps of fresh sessions, which are recorded whole whatever they cost."""
    pairs = Pairs()
    repeats = min(plan.beginnings, max(2, int(plan.beginning_s / (2 * full_steps * step_s)))) if plan.beginnings else 0
    for i in range(repeats):
        training = kind.make(written, seed=i)
        block(training, 4)
        tool = Osler(folder / f"first{i}", budget_none=False)
        gc.collect()
        before = block(training, full_steps)
        with watched(tool):
            clock = block(training, full_steps)
        pairs.add(clock, before, block(training, full_steps))
        tool.close()
    return pairs if repeats else None


def measure(kind: Kind, written: bool, plan: Plan, folder: Path) -> dict[str, Any]:
    """One row: the same training bare and under each tool.

    Returns:
        `bare_ms` and, by tool, the pairs' figures; for osler also its own account and `first` for a training's first steps.
    """
    full_steps = Settings().budget.full_steps
    training = kind.make(written)
    block(training, 8)
    step_s = min(block(training, 4).wall for _ in range(3))
    makers: dict[str, Callable[[], Tool]] = {
        "osler": lambda: Osler(folder / "default", False),
        "osler --budget none": lambda: Osler(folder / "none", True),
        "detect_anomaly": Anomaly,
        "isnan hooks": lambda: IsnanHooks(training),
        "item norms": lambda: ItemNorms(training),
    }
    first = beginnings(kind, written, plan, folder, full_steps, step_s) if "osler" in plan.tools else None
    tools = {name: makers[name]() for name in plan.tools}
    for tool in tools.values():
        with watched(tool):  # osler's whole first steps, and everyone's own warming up
            block(training, 2 * full_steps if isinstance(tool, Osler) else 4)
    steps = max(2, round(plan.block_s / step_s))
    pairs = {name: Pairs() for name in tools}
    bare: list[Clock] = []
    order = list(tools)
    for _ in range(plan.rounds):
        random.shuffle(order)
        gc.collect()
        before = block(training, steps)
        for name in order:
            with watched(tools[name]):
                clock = block(training, steps)
            after = block(training, steps)
            pairs[name].add(clock, before, after)
            bare.append(before)
            before = after
    row: dict[str, Any] = {
        "kind": kind.name,
        "loss": "15 operations" if written else "one call",
        "steps_per_block": steps,
        "bare_ms": median_of([1e3 * c.wall for c in bare])._asdict(),
        "tools": {name: p.figures() for name, p in pairs.items()},
    }
    for name, tool in tools.items():
        if isinstance(tool, Osler):
            tool.close()
            row["tools"][name]["own_account"] = tool.sink.figures
            row["tools"][name]["said"] = tool.sink.said
            for line in tool.sink.said:
                progress(f"{name} said: {line}")
    if first is not None:
        row["first"] = {"steps": full_steps, **first.figures()}
    return row


def _estimate(figures: dict[str, float] | None) -> str:
    return "–" if figures is None else Estimate(**figures).text()


def markdown(rows: list[dict[str, Any]], tools: list[str], measure_of: str) -> str:
    """The table of one measure: `wall`, `cpu` or `cpu_total`."""
    header = ["training", "loss", "bare ms/step", *tools]
    with_first = any("first" in row for row in rows)
    if with_first:
        header.append(f"osler, first {next(r['first']['steps'] for r in rows if 'first' in r)} steps")
    body = []
    for row in rows:
        cells = [row["kind"], row["loss"], f"{row['bare_ms']['value']:.2f}"]
        cells += [_estimate(row["tools"][tool][measure_of]) for tool in tools]
        if with_first:
            cells.append(_estimate(row.get("first", {}).get(measure_of)))
        body.append(cells)
    return table(header, body)


def account(rows: list[dict[str, Any]]) -> str:
    """What osler says of itself: the ratio it reports, detection and tape in microseconds, steps taped."""
    header = ["training", "loss", "budget", "reported ratio", "detection µs", "tape µs", "steps taped", "close looks"]
    body = []
    for row in rows:
        for figures in row["tools"].values():
            own = figures.get("own_account")
            if own is not None:
                share = own["taped_steps"] / max(1, own["steps"])
                body.append(
                    [
                        row["kind"],
                        row["loss"],
                        own["budget"],
                        f"{own['ratio']:.3f}",
                        f"{own['detection_us']:.0f}",
                        f"{own['tape_us']:.0f}",
                        f"{share:.0%} of {own['steps']}",
                        str(own["looks"]),
                    ]
                )
    return table(header, body)


# The thresholds of glibc's malloc. Left to itself it gives memory back to the system and faults it in again in a pattern
# that differs from process to process: on the CNN, 150 to 1100 page faults a step in the bare loop alone, which is up to
# a tenth of the step and drowns what is to be measured.
STEADY_HEAP = {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}

TOOLS = ["osler", "osler --budget none", "detect_anomaly", "isnan hooks", "item norms"]


def main() -> None:
    """Measure, then print the tables (Markdown), or the figures with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, wider intervals")
    parser.add_argument("--json", action="store_true", help="figures as JSON in place of the tables")
    parser.add_argument("--rounds", type=int, help="watched blocks of each tool (default 30, quick 8)")
    parser.add_argument("--block", type=float, metavar="S", help="seconds a block (default 0.3, quick 0.1)")
    parser.add_argument("--beginnings", type=int, help="trainings whose first steps are measured (default 12, quick 3)")
    parser.add_argument("--rows", default="", help="comma-separated numbers of the trainings, from 1 (default: all)")
    parser.add_argument("--tools", default=",".join(TOOLS), help="comma-separated; default: %(default)s")
    parser.add_argument(
        "--loss", choices=("both", "one", "written"), default="both", help="which losses (default both)"
    )
    parser.add_argument(
        "--malloc", choices=("steady", "system"), default="steady", help="see STEADY_HEAP in the source"
    )
    args = parser.parse_args()
    if args.malloc == "steady" and any(os.environ.get(name) != value for name, value in STEADY_HEAP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **STEADY_HEAP})
    tools = [t.strip() for t in args.tools.split(",")]
    if unknown := [t for t in tools if t not in TOOLS]:
        parser.error(f"unknown tool {unknown[0]!r}; known are {', '.join(TOOLS)}")
    try:
        kinds = [KINDS[int(n) - 1] for n in args.rows.split(",")] if args.rows else list(KINDS)
    except (ValueError, IndexError):
        parser.error(f"--rows takes numbers from 1 to {len(KINDS)}")
    plan = Plan(
        rounds=args.rounds or (8 if args.quick else 30),
        block_s=args.block or (0.1 if args.quick else 0.3),
        beginnings=args.beginnings if args.beginnings is not None else (3 if args.quick else 12),
        beginning_s=4.0 if args.quick else 25.0,
        tools=tools,
    )
    random.seed(0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    about = {
        **machine(),
        "threads of torch": "1",
        "malloc": args.malloc,
        "blocks": f"{plan.rounds} of {plan.block_s} s for each tool and row",
    }
    rows = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        for kind in kinds:
            for written in {"both": (False, True), "one": (False,), "written": (True,)}[args.loss]:
                folder = Path(temporary) / f"{len(rows)}"
                rows.append(measure(kind, written, plan, folder))
                told = ", ".join(f"{n} {f['wall']['value']:.3f}" for n, f in rows[-1]["tools"].items())
                progress(f"{kind.name}, {rows[-1]['loss']}: {rows[-1]['bare_ms']['value']:.2f} ms; {told}")
    about["took"] = f"{time.perf_counter() - began:.0f} s"
    if args.json:
        json.dump({"machine": about, "rows": rows}, sys.stdout, indent=1)
        print()
        return
    print(facts(about))
    print("\nWall time, watched over bare: median of the paired blocks (95 % interval)\n")
    print(markdown(rows, tools, "wall"))
    print("\nCPU time, watched over bare: median of the paired blocks (95 % interval)\n")
    print(markdown(rows, tools, "cpu"))
    print("\nCPU time, all of it watched over all of it bare (95 % interval)\n")
    print(markdown(rows, tools, "cpu_total"))
    if any(t.startswith("osler") for t in tools):
        print("\nWhat osler says of itself in these runs\n")
        print(account(rows))


if __name__ == "__main__":
    main()
