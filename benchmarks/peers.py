"""What two published tools that watch trainings cost beside osler: `python benchmarks/peers.py > peers.md`.

SageMaker Debugger (`pip install smdebug`) and osler run in this process, on one training each, in short blocks that
alternate with bare blocks, as in `overhead.py`. smdebug's hooks cannot be taken off, so it has a twin of the training; a
second twin that nothing watches is measured in the same way and shows what having a twin does.

TrainCheck (`pip install traincheck`) rewrites a script and all of torch in its process, so `traincheck-collect` runs a
script of its own, and a plain process of the same script stands beside it. Both wait for their turn, stopped, and take
their blocks one after the other. With `--invariants` it collects what checking needs, as its README has it for long runs.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Estimate, facts, machine, median_of, progress, table
from models import KINDS, Kind, Training
from overhead import STEADY_HEAP, Clock, Osler, Pairs, block, watched
from torch import nn

from osler.core.settings import Settings

IN_PROCESS = ("osler", "smdebug", "unwatched twin")
TRAINCHECK = ("traincheck-collect", "traincheck-collect --invariants")
PATIENCE_S = 120.0  # how long a child process may take to start or to answer

BLOCKS = '''"""Takes blocks of steps on demand: a number of steps comes in, seconds of wall and CPU time go out."""

import os
import socket
import time


def loop():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["PEERS_SOCKET"])
    stream = connection.makefile("rw")
    stream.write(f"{os.getpid()}\\n")
    stream.flush()
    step = 0
    while line := stream.readline():
        last = step + int(line)
        cpu, wall = time.process_time(), time.perf_counter()
        while step < last:
            yield step
            step += 1
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        stream.write(f"{wall} {cpu}\\n")
        stream.flush()
'''

# The training of `models.Training.step`, written as scripts are; TrainCheck finds `model` by its name.
SCRIPT = """import sys

import torch
from blocks import loop
from torch import nn

sys.path.insert(0, {benchmarks!r})
from models import BATCHES, KINDS

torch.set_num_threads(1)
torch.manual_seed(0)
kind = KINDS[{index}]
model = kind.model()
optimizer = kind.optimizer(model)
criterion = nn.CrossEntropyLoss()
batches = kind.batches()
for step in loop():
    inputs, targets = batches[step % BATCHES]
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
"""


class ToolFailed(Exception):
    """A tool did not do its work; the message says what it answered."""


class Unwatched:
    """Nothing."""

    name = "unwatched twin"

    def on(self) -> None:
        """Do nothing."""

    def off(self) -> None:
        """Do nothing."""


class SmDebug(Unwatched):
    """smdebug's hook in its default configuration: the loss every 500 steps, hooks on every module and parameter."""

    name = "smdebug"

    def __init__(self, training: Training, folder: Path) -> None:
        import smdebug.pytorch as smd
        from smdebug.core.utils import error_handling_agent

        smd.del_hook()
        self._agent = error_handling_agent
        self._folder = folder
        self._hook = smd.Hook(out_dir=str(folder))
        self._hook.register_module(training.model)
        self._hook.register_loss(training.loss)

    def check(self) -> None:
        """smdebug logs an error of its own and takes no further part; that must not pass for a low cost.

        Raises:
            ToolFailed: if it has switched itself off or has written no file.
        """
        if self._agent.disable_smdebug:
            # numpy 2.3 took out ndarray.tostring, which smdebug 1.0.34 calls to write a tensor.
            fix = "" if hasattr(np.ndarray, "tostring") else ': it needs pip install "numpy<2.3"'
            raise ToolFailed(f"smdebug switched itself off after the error above{fix}")
        if not any(p.is_file() for p in self._folder.rglob("*")):
            raise ToolFailed("smdebug has written no file")

    def close(self) -> None:
        """Write out what is left."""
        self._hook.close()


class Child:
    """A process of the script that takes blocks on demand and is stopped between them."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._log = folder / "log.txt"
        address = str(folder / "s")
        with socket.socket(socket.AF_UNIX) as listener, self._log.open("wb") as log:
            listener.bind(address)
            listener.listen()
            listener.settimeout(1)
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PEERS_SOCKET": address},
                start_new_session=True,
                cwd=folder,
            )
            self._connection = self._accept(listener)
        self._connection.settimeout(PATIENCE_S)
        self._stream = self._connection.makefile("rw")
        self._pid = int(self._line())
        os.kill(self._pid, signal.SIGSTOP)

    def _accept(self, listener: socket.socket) -> socket.socket:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(TimeoutError):
                return listener.accept()[0]
            if self._process.poll() is not None:
                break
        raise self._failed("the script did not start")

    def _failed(self, what: str) -> ToolFailed:
        self._kill()
        said = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return ToolFailed(f"{what}; last line: {said[-1] if said else 'none'}")

    def _line(self) -> str:
        try:
            line = self._stream.readline()
        except OSError:
            line = ""
        if not line:
            raise self._failed("the script did not answer")
        return line

    def block(self, steps: int) -> Clock:
        """Take that many steps."""
        os.kill(self._pid, signal.SIGCONT)
        self._stream.write(f"{steps}\n")
        self._stream.flush()
        wall, cpu = map(float, self._line().split())
        os.kill(self._pid, signal.SIGSTOP)
        return Clock(wall / steps, cpu / steps)

    def close(self) -> None:
        """Let the script end by itself, so that the tool writes out what it has.

        Raises:
            ToolFailed: if it does not end, or ends with an error.
        """
        os.kill(self._pid, signal.SIGCONT)
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self._connection.close()
        try:
            code = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise self._failed("the script did not end") from None
        if code:
            raise self._failed(f"the script ended with code {code}")

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def child(command: list[str], folder: Path) -> Iterator[Child]:
    """The process, which does not outlive the block."""
    it = Child(command, folder)
    try:
        yield it
    finally:
        it._kill()


@dataclass
class Plan:
    """How much to measure: watched blocks of each tool, and seconds a block lasts (at least two steps)."""

    rounds: int
    block_s: float


def in_process(kind: Kind, tools: list[str], plan: Plan, folder: Path) -> dict[str, Any]:
    """The tools that run in this process: the bare step in ms and the pairs' figures by tool."""

    def fresh() -> Training:
        training = kind.make(False)
        training.loss = nn.CrossEntropyLoss()  # smdebug watches losses that are modules
        return training

    bare = fresh()
    made: dict[str, tuple[Any, Training]] = {}
    for name in tools:
        training = bare if name == "osler" else fresh()
        if name == "osler":
            made[name] = Osler(folder / "osler", False), training
        elif name == "smdebug":
            made[name] = SmDebug(training, folder / "smdebug"), training
        else:
            made[name] = Unwatched(), training
    block(bare, 8)
    step_s = min(block(bare, 4).wall for _ in range(3))
    steps = max(2, round(plan.block_s / step_s))
    for tool, training in made.values():
        with watched(tool):  # osler's whole first steps, and everyone's own warming up
            block(training, 2 * Settings().budget.full_steps if isinstance(tool, Osler) else steps)
        if isinstance(tool, SmDebug):
            tool.check()
    pairs = {name: Pairs() for name in made}
    alone: list[float] = []
    order = list(made)
    for _ in range(plan.rounds):
        random.shuffle(order)
        gc.collect()
        before = block(bare, steps)
        for name in order:
            tool, training = made[name]
            with watched(tool):
                clock = block(training, steps)
            after = block(bare, steps)
            pairs[name].add(clock, before, after)
            alone.append(1e3 * before.wall)
            before = after
    for tool, _ in made.values():
        if isinstance(tool, Osler):
            tool.close()
            for line in tool.sink.said:
                progress(f"osler said: {line}")
        elif isinstance(tool, SmDebug):
            tool.close()
            tool.check()
    return {
        "bare_ms": median_of(alone)._asdict(),
        "steps_per_block": steps,
        "tools": {n: p.figures() for n, p in pairs.items()},
    }


def pairs_of(plain: Child, other: Child, plan: Plan, multiple: int) -> tuple[Pairs, list[float]]:
    """Blocks of both in turn, the other's of a multiple of so many steps; also the plain steps in ms."""
    counts = {
        one: max(1, round(plan.block_s / one.block(2 * unit).wall / unit)) * unit
        for one, unit in ((plain, 2), (other, multiple))
    }
    pairs = Pairs()
    alone: list[float] = []
    before = plain.block(counts[plain])
    for _ in range(plan.rounds):
        clock = other.block(counts[other])
        after = plain.block(counts[plain])
        pairs.add(clock, before, after)
        alone.append(1e3 * before.wall)
        before = after
    return pairs, alone


def infer(traces: Path) -> Path:
    """The invariants that TrainCheck finds in its own trace of the healthy training.

    Raises:
        ToolFailed: if it finds none.
    """
    found = traces.parent / "invariants.json"
    command = [str(Path(sys.executable).with_name("traincheck-infer")), "-f", str(traces), "-o", str(found)]
    try:
        done = subprocess.run(command, cwd=traces.parent, capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"traincheck-infer took more than {PATIENCE_S:.0f} s") from None
    if done.returncode or not found.exists() or not found.stat().st_size:
        said = (done.stderr or done.stdout).splitlines() or ["nothing"]
        raise ToolFailed(f"traincheck-infer ended with code {done.returncode} and said: {said[-1][-200:]}")
    return found


def beside_plain(index: int, tools: list[str], plan: Plan, folder: Path) -> tuple[dict[str, Any], list[float]]:
    """TrainCheck beside a plain process of the same script: the pairs' figures by tool and the plain steps in ms.

    First it collects everything; the invariants that it infers from that trace are what the second run collects for,
    with TrainCheck's own defaults: ten steps whole, then every tenth. A failure is told on stderr and its tool left out.
    """
    folders = {name: folder / name.replace(" ", "") for name in ("plain", *TRAINCHECK)}
    for place in folders.values():
        place.mkdir(parents=True)
        (place / "blocks.py").write_text(BLOCKS)
        (place / "train.py").write_text(SCRIPT.format(benchmarks=str(Path(__file__).resolve().parent), index=index))
    figures: dict[str, Any] = {}
    alone: list[float] = []
    extra: list[str] = []
    with child([sys.executable, "train.py"], folders["plain"]) as plain:
        plain.block(8)
        for name in TRAINCHECK[: 1 + (TRAINCHECK[1] in tools)]:
            traces = folders[name] / "out"
            command = [str(Path(sys.executable).with_name("traincheck-collect")), "--pyscript", "train.py"]
            command += ["--models-to-track", "model", "--output-dir", str(traces), *extra]
            try:
                with child(command, folders[name]) as other:
                    other.block(10 if extra else 2)
                    pairs, bare = pairs_of(plain, other, plan, 10 if extra else 2)
                    other.close()
                if not any(p.stat().st_size for p in traces.glob("trace_*")):
                    raise ToolFailed("it has left no trace")
                figures[name] = pairs.figures()
                alone += bare
                progress(f"{name}: {pairs.wall().text()}")
                if not extra and TRAINCHECK[1] in tools:
                    extra = ["--invariants", str(infer(traces))]
            except ToolFailed as failure:
                progress(f"{name} failed on {KINDS[index].name}: {failure}")
                break
    return figures, alone


def available(tools: list[str]) -> list[str]:
    """Those that can be used here; a line on stderr for each of the others."""
    usable = []
    left_out: set[str] = set()
    for tool in tools:
        name = "traincheck" if tool in TRAINCHECK else tool
        module = {"smdebug": "smdebug.pytorch", "traincheck": "traincheck"}.get(name)
        if name in left_out:
            continue
        try:
            if module is not None:
                with contextlib.redirect_stdout(sys.stderr):
                    importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name == name:
                progress(f"{name} is not installed: pip install {name}")
            else:
                progress(f"{name} is left out, it cannot be imported: {error}")
            left_out.add(name)
            continue
        except Exception as error:  # smdebug and old protobuf raise TypeError here, among others
            line = str(error).splitlines()[0] if str(error) else ""
            progress(f"{name} is left out, it cannot be imported: {type(error).__name__}: {line}")
            left_out.add(name)
            continue
        usable.append(tool)
    return usable


def markdown(rows: list[dict[str, Any]], tools: list[str], measure_of: str) -> str:
    """The table of one measure: `wall`, `cpu` or `cpu_total`."""
    body = []
    for row in rows:
        cells = [row["kind"], f"{row['bare_ms']['value']:.2f}"]
        for tool in tools:
            figures = row["tools"].get(tool)
            cells.append("failed" if figures is None else Estimate(**figures[measure_of]).text())
        body.append(cells)
    return table(["training", "bare ms/step", *tools], body)


def versions(tools: list[str]) -> dict[str, str]:
    """The releases of the tools from elsewhere."""
    found = {"numpy": version("numpy")}
    for name in ("smdebug", "traincheck"):
        if any(t.startswith(name) for t in tools):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "not a distribution"
    return found


def main() -> None:
    """Measure, then print the tables (Markdown), or the figures with `--json`."""
    known = [*IN_PROCESS, *TRAINCHECK]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="watched blocks of each tool (default %(default)s)")
    parser.add_argument("--block", type=float, default=0.3, metavar="S", help="seconds a block (default %(default)s)")
    parser.add_argument(
        "--rows", default="2,3,4", help="comma-separated numbers of the trainings, from 1 (%(default)s)"
    )
    parser.add_argument("--tools", default=",".join(known), help="comma-separated; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="figures as JSON in place of the tables")
    args = parser.parse_args()
    tools = [t.strip() for t in args.tools.split(",")]
    if unknown := [t for t in tools if t not in known]:
        parser.error(f"unknown tool {unknown[0]!r}; known are {', '.join(known)}")
    try:
        indices = [int(n) - 1 for n in args.rows.split(",")]
    except ValueError:
        indices = [-1]
    if not all(0 <= i < len(KINDS) for i in indices):
        parser.error(f"--rows takes numbers from 1 to {len(KINDS)}")
    if any(os.environ.get(name) != value for name, value in STEADY_HEAP.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **STEADY_HEAP})
    plan = Plan(args.rounds, args.block)
    random.seed(0)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    tools = available(tools)
    if not tools:
        raise SystemExit("none of the tools can be used here")
    about = {**machine(), **versions(tools), "threads of torch": "1"}
    about["blocks"] = f"{plan.rounds} of {plan.block_s} s for each tool and row"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(sys.stderr):  # smdebug logs to stdout
        for index in indices:
            kind, folder = KINDS[index], Path(temporary) / str(index)
            row: dict[str, Any] = {"kind": kind.name, "tools": {}}
            rows.append(row)
            here = [t for t in tools if t in IN_PROCESS]
            if here:
                try:
                    found = in_process(kind, here, plan, folder)
                except ToolFailed as failure:
                    progress(f"{kind.name}: {failure}; smdebug is left out")
                    here.remove("smdebug")
                    found = in_process(kind, here, plan, folder / "again")
                row["tools"].update(found.pop("tools"))
                row.update(found)
            if any(t in TRAINCHECK for t in tools):
                figures, alone = beside_plain(index, tools, plan, folder)
                row["tools"].update(figures)
                if alone:
                    row["plain_ms"] = median_of(alone)._asdict()
            row.setdefault("bare_ms", row.get("plain_ms", {"value": float("nan")}))
            told = ", ".join(f"{n} {f['wall']['value']:.3f}" for n, f in row["tools"].items())
            progress(f"{kind.name}: {row['bare_ms']['value']:.2f} ms; {told}")
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


if __name__ == "__main__":
    main()
