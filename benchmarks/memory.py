"""Whether watching stays within bounds: `python benchmarks/memory.py`.

Three questions, each asked of the same script with and without osler in processes of its own: how much does a long
training grow, how much does its journal weigh, and how many bytes of a step's inputs does osler hold besides the user.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import facts, machine, osler, progress, table

MIB = 1024 * 1024

LONG = """\
import os, sys
import torch

torch.set_num_threads(1)
STEPS = int(sys.argv[1])
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
batches = [(torch.randn(16, 16), torch.randint(0, 4, (16,))) for _ in range(8)]
for step in range(1, STEPS + 1):
    x, y = batches[step % 8]
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    if step % (STEPS // 20) == 0:
        print("rss", step, resident(), flush=True)
"""

# The script lets go of each batch before it steps: what is alive then beyond the bare run's bytes is osler's.
LARGE = """\
import gc, resource, sys
import torch

torch.set_num_threads(1)
ROWS, COLUMNS, MICRO, STEPS = 8192, 2048, int(sys.argv[1]), 24  # 64 MiB a micro-batch


def alive():
    gc.collect()
    seen = {}
    for o in gc.get_objects():
        if isinstance(o, torch.Tensor):
            storage = o.untyped_storage()
            seen[storage._cdata] = storage.nbytes()
    return sum(seen.values())


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
most_before = most_after = 0
for step in range(STEPS):
    optimizer.zero_grad()
    for _ in range(MICRO):
        x = torch.randn(ROWS, COLUMNS)
        loss = model(x).square().mean()
        del x
        loss.backward()
        del loss
    if step > 3:
        most_before = max(most_before, alive())
    optimizer.step()
    if step > 3:
        most_after = max(most_after, alive())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print("held", ROWS * COLUMNS * 4 * MICRO, most_before, most_after, peak)
"""


def run(command: list[str], cwd: Path, limit: float) -> str:
    """What a command wrote to stdout.

    Raises:
        SystemExit: it failed; the message holds what it wrote to stderr.
    """
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=limit)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def long_run(prefix: list[str], cwd: Path, steps: int) -> dict[str, Any]:
    """Resident set in the course of a long training of a small model; the run's folder when it has ended."""
    out = run([*prefix, "long.py", str(steps)], cwd, 1800)
    curve = [(int(a), int(b)) for _, a, b in (line.split() for line in out.splitlines() if line.startswith("rss "))]
    files = [p for p in cwd.glob(".osler/runs/*/**/*") if p.is_file()]
    journal = sum(p.stat().st_size for p in files if p.name.startswith(("journal-", "arrays-")))
    return {
        "steps": steps,
        "start_step": curve[0][0],
        "start_mib": curve[0][1] / MIB,
        "end_mib": curve[-1][1] / MIB,
        "most_mib": max(b for _, b in curve) / MIB,
        "grown_mib": (curve[-1][1] - curve[0][1]) / MIB,
        "journal_mib": journal / MIB,
        "folder_mib": sum(p.stat().st_size for p in files) / MIB,
        "curve": curve,
    }


def held(prefix: list[str], cwd: Path, micro_batches: int) -> dict[str, float]:
    """Tensor bytes alive before and after the optimizer's step, and the peak resident set."""
    words = next(
        line
        for line in run([*prefix, "large.py", str(micro_batches)], cwd, 600).splitlines()
        if line.startswith("held ")
    )
    inputs, before, after, peak = (int(w) for w in words.split()[1:])
    return {"inputs": inputs, "before": before, "after": after, "peak": peak}


def main() -> None:
    """Measure, then print the tables (Markdown), or the figures with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    parser.add_argument("--json", action="store_true", help="figures as JSON in place of the tables")
    parser.add_argument("--steps", type=int, help="steps of the long training (default 100000)")
    args = parser.parse_args()
    steps = args.steps or (10_000 if args.quick else 100_000)
    if not Path("/proc/self/statm").exists():
        parser.error("the resident set is read from /proc, which this system does not have")
    about = machine()
    commands = {
        "bare": [sys.executable],
        "osler": [*osler(), "run"],
        "osler --budget none": [*osler(), "run", "--budget", "none"],
    }
    longs, larges = {}, {}
    for name, prefix in commands.items():
        with tempfile.TemporaryDirectory() as temporary:
            cwd = Path(temporary)
            (cwd / "long.py").write_text(LONG)
            (cwd / "large.py").write_text(LARGE)
            longs[name] = long_run(prefix, cwd, steps)
            progress(f"{name}: {steps} steps, grown by {longs[name]['grown_mib']:.1f} MiB")
            for micro in (1, 4):
                larges[name, micro] = held(prefix, cwd, micro)
                progress(f"{name}: {micro} micro-batches, peak {larges[name, micro]['peak'] / MIB:.0f} MiB")
    if args.json:
        rows = [{"watched": n, "micro_batches": m, **v} for (n, m), v in larges.items()]
        json.dump({"machine": about, "long": longs, "held": rows}, sys.stdout, indent=1)
        print()
        return
    print(facts(about))
    start = longs["bare"]["start_step"]
    print(f"\n{steps} steps of a small model, MiB\n")
    print(table(["", f"at step {start}", "at the end", "grown", "journal", "run's folder"], [
        [n, *(f"{v[k]:.1f}" for k in ("start_mib", "end_mib", "grown_mib", "journal_mib", "folder_mib"))] for n, v in longs.items()
    ]))  # fmt: skip
    print(
        "\nA step with large inputs: tensor bytes alive and peak resident set beyond the bare run's, in copies of the step's inputs\n"
    )
    body = []
    for (name, micro), v in larges.items():
        bare = larges["bare", micro]
        extra = [f"{(v[k] - bare[k]) / v['inputs']:.2f}" for k in ("before", "after", "peak")]
        if name != "bare":
            body.append([name, str(micro), f"{v['inputs'] / MIB:.0f}", *extra])
    print(table(["", "micro-batches", "inputs, MiB", "before the step", "after the step", "peak"], body))


if __name__ == "__main__":
    main()
