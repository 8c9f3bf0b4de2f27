"""How long osler takes to begin: `python benchmarks/startup.py`.

Subprocesses, interleaved: each command beside the one it is compared with, in alternating order, after one run of each
that fills the file cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import facts, machine, median_of, osler, progress, table

SCRIPT = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 4)).square().mean()
loss.backward()
optimizer.step()

import time

print("stepped", time.time())
"""


class Took(NamedTuple):
    """Seconds from the start of a command to the script's first step (to the end where there is none), and to the end."""

    first_step: float
    end: float


def took(command: Sequence[str], cwd: Path) -> Took:
    """Run a command once.

    Raises:
        SystemExit: it failed; the message holds what it wrote to stderr.
    """
    clock, began = time.time(), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    end = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr[-2000:]}")
    stamp = next((float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("stepped ")), None)
    return Took(end if stamp is None else stamp - clock, end)


def pairs(
    names: tuple[str | None, str | None], plain: Sequence[str], more: Sequence[str], cwd: Path, runs: int
) -> list[dict[str, Any]]:
    """Median seconds of both commands and of their paired difference, for each moment that has a name."""
    took(plain, cwd)
    took(more, cwd)
    rows: list[tuple[Took, Took]] = []
    for i in range(runs):
        if i % 2 == 0:
            a = took(plain, cwd)
            rows.append((a, took(more, cwd)))
        else:
            b = took(more, cwd)
            rows.append((took(plain, cwd), b))
    results = []
    for moment, name in enumerate(names):
        if name is None:
            continue
        results.append(
            {
                "what": name,
                "plain": median_of([a[moment] for a, _ in rows])._asdict(),
                "with": median_of([b[moment] for _, b in rows])._asdict(),
                "difference": median_of([b[moment] - a[moment] for a, b in rows])._asdict(),
            }
        )
        progress(f"{name}: {results[-1]['with']['value']:.3f} s, {results[-1]['difference']['value']:+.3f} s")
    return results


def loads_torch(cwd: Path) -> bool:
    """Whether `import osler` brings torch in."""
    code = "import sys, osler; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


def main() -> None:
    """Measure, then print the table (Markdown), or the figures with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 runs of each command")
    parser.add_argument("--json", action="store_true", help="figures as JSON in place of the table")
    parser.add_argument("--runs", type=int, help="runs of each command (default 21)")
    args = parser.parse_args()
    runs = args.runs or (5 if args.quick else 21)
    about = {**machine(), "runs of each command": str(runs)}
    python = [sys.executable]
    with tempfile.TemporaryDirectory() as temporary:
        cwd = Path(temporary)
        (cwd / "script.py").write_text(SCRIPT)
        nothing = [*python, "-c", "pass"]
        rows = [
            *pairs((None, "`import osler`"), nothing, [*python, "-c", "import osler"], cwd, runs),
            *pairs((None, "`osler explain log-of-zero`"), nothing, [*osler(), "explain", "log-of-zero"], cwd, runs),
            *pairs(
                ("`osler run script.py`, to its first step", "`osler run script.py`, to the end"),
                [*python, "script.py"],
                [*osler(), "run", "script.py"],
                cwd,
                runs,
            ),
        ]
        torch = loads_torch(cwd)
    if args.json:
        json.dump({"machine": about, "import_osler_loads_torch": torch, "rows": rows}, sys.stdout, indent=1)
        print()
        return
    print(facts({**about, "`import osler` loads torch": "yes" if torch else "no"}))
    print("\nMedian seconds (95 % interval); beside them the plain command of the pair and the paired difference\n")
    body = [
        [r["what"], *("{value:.3f} ({low:.3f}–{high:.3f})".format(**r[k]) for k in ("plain", "with", "difference"))]
        for r in rows
    ]
    print(table(["command", "plain python", "with osler", "difference"], body))


if __name__ == "__main__":
    main()
