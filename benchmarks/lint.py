"""What `osler lint` costs: over the installed sources of torch and scikit-learn, side by side with its lower bound.

    python benchmarks/lint.py
    python benchmarks/lint.py --torchfix ~/venvs/torchfix/bin/python --package torch --package sklearn --every 4

The bound is parsing, walking and `symtable` of the same files in the same process: what any tool has to do that reads
Python with the standard library. Packages are cut into pieces of neighbouring files; piece by piece the two run one
after the other, in an order that changes, and the ratio is that of the totals, resampled in pairs. `--every N` takes
each Nth piece. TorchFix needs an environment of its own; it is given the files in which the word torch occurs (it passes over
the others), and the time is held against ours for the same ones. The last table is
the whole process of `osler lint` on a tree of 1,000 files of which none has changed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import subprocess
import symtable
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

from common import progress, ratio_of_totals, table

from osler.lint.linter import Linter, Plan, collecting_rarely
from osler.syntax.text import Unreadable, read

PIECE = 60
_TORCHFIX = """
import sys, time
from pathlib import Path
from torchfix.torchfix import TorchChecker
start = time.process_time()
for name in sys.argv[1:]:
    try:
        list(TorchChecker(None, Path(name).read_text().splitlines(keepends=True)).run())
    except Exception:
        pass
print(time.process_time() - start)
"""


def files_of(package: str) -> list[str]:
    """The package's sources, in order."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return []
    return sorted(str(p) for p in Path(spec.submodule_search_locations[0]).rglob("*.py"))


def bound(files: list[str]) -> float:
    """CPU seconds of parsing, walking and `symtable`."""
    start = time.process_time()
    for name in files:
        try:
            text = read(Path(name)).text
            for _ in ast.walk(ast.parse(text)):
                pass
            symtable.symtable(text, name, "exec")
        except (Unreadable, SyntaxError, RecursionError):
            continue
    return time.process_time() - start


def linted(linter: Linter, files: list[str]) -> dict[str, float]:
    """CPU seconds of looking at each file."""
    seconds = {}
    for name in files:
        start = time.process_time()
        linter.lint(name)
        seconds[name] = time.process_time() - start
    return seconds


def speaks_of_torch(name: str) -> bool:
    """TorchFix passes over files in which the word does not occur."""
    return b"torch" in Path(name).read_bytes()


def torchfix(python: str, files: list[str]) -> float | None:
    """CPU seconds of TorchFix in a process of its own, without its start."""
    done = subprocess.run([python, "-c", _TORCHFIX, *files], capture_output=True, text=True, check=False)
    try:
        return float(done.stdout.split()[-1])
    except (IndexError, ValueError):
        progress(f"torchfix failed: {done.stderr.strip().splitlines()[-1:]}")
        return None


def compare(package: str, every: int, python: str | None) -> list[str]:
    """A row of the table."""
    files = files_of(package)
    pieces = [files[i : i + PIECE] for i in range(0, len(files), PIECE)][::every]
    linter = Linter(Plan((2, 6)))
    chance = random.Random(0)
    bounds: list[float] = []
    looks: list[dict[str, float]] = []
    others, ours, shared = [], [], 0
    with collecting_rarely():
        for number, piece in enumerate(pieces, 1):
            both = [lambda p=piece: bounds.append(bound(p)), lambda p=piece: looks.append(linted(linter, p))]
            chance.shuffle(both)
            for one in both:
                one()
            both_read = [name for name in piece if speaks_of_torch(name)] if python else []
            if python and both_read and (seconds := torchfix(python, both_read)) is not None:
                others.append(seconds)
                ours.append(sum(looks[-1][name] for name in both_read))
                shared += len(both_read)
            totals = [sum(look.values()) for look in looks]
            progress(f"{package}: piece {number} of {len(pieces)}, {sum(totals) / sum(bounds):.2f} so far")
    count = sum(map(len, pieces))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        package,
        f"{count:,}",
        f"{1000 * sum(bounds) / count:.1f}",
        f"{1000 * sum(totals) / count:.1f}",
        ratio_of_totals(totals, bounds).text(".2f"),
        f"{1000 * sum(others) / shared:.0f} ({shared:,})" if others else "not run",
        ratio_of_totals(others, ours).text(".1f") if others else "",
        f"{peak:.0f}",
    ]


def warm(files: list[str], runs: int) -> list[str]:
    """Wall and CPU seconds of the whole process on an unchanged tree."""
    osler = Path(sys.executable).with_name("osler")
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(files):
            target = Path(folder) / f"d{number // 50}" / f"f{number}.py"
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(name, target)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=False)
        walls, works = [], []
        for turn in range(runs + 2):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([osler, "lint", "-q"], cwd=folder, env=environ, capture_output=True, check=False)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            if turn == 0:
                cold = wall
            elif turn > 1:  # the second run writes byte code
                walls.append(wall)
                works.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    walls.sort()
    works.sort()
    middle = len(walls) // 2
    return [f"{len(files):,}", f"{cold:.1f}", f"{walls[middle]:.2f}", f"{walls[0]:.2f}", f"{works[middle]:.2f}"]


def main() -> None:
    """Measure, print."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", action="append", help="default: torch and sklearn")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--torchfix", metavar="PYTHON", help="an interpreter that has torchfix")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    wishes = parser.parse_args()
    packages = [p for p in wishes.package or ["torch", "sklearn"] if files_of(p)]
    if not packages:
        sys.exit("none of the packages is installed")
    rows = [compare(p, wishes.every, wishes.torchfix) for p in packages]
    many = [f for p in packages for f in files_of(p)][:1000]
    unchanged = warm(many, wishes.runs)
    header = ["package", "files", "bound, ms a file", "lint, ms a file", "lint / bound", "TorchFix, ms a file (files)"]
    header += ["TorchFix / lint", "peak MiB"]
    second = ["files, none changed", "cold, s", "warm, median s", "warm, least s", "warm, CPU s"]
    if wishes.json:
        print(json.dumps({"cost": [dict(zip(header, row)) for row in rows], "warm": dict(zip(second, unchanged))}))
        return
    print(table(header, rows))
    print()
    print(table(second, [unchanged]))


if __name__ == "__main__":
    main()
