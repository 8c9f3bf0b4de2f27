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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import facts, machine, median_of, osler, progress, table, timed

SCRIPT = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 4)).square().mean()
loss.backward()
optimizer.step()
"""


def pairs(name: str, plain: Sequence[str], more: Sequence[str], cwd: Path, runs: int) -> dict[str, Any]:
    """Median seconds of both commands and of their paired difference."""
    timed(plain, cwd)
    timed(more, cwd)
    rows = []
    for i in range(runs):
        first, second = (plain, more) if i % 2 == 0 else (more, plain)
        took = {id(first): timed(first, cwd)}
        took[id(second)] = timed(second, cwd)
        rows.append((took[id(plain)], took[id(more)]))
    result = {
        "what": name,
        "plain": median_of([a for a, _ in rows])._asdict(),
        "with": median_of([b for _, b in rows])._asdict(),
        "difference": median_of([b - a for a, b in rows])._asdict(),
    }
    progress(f"{name}: {result['with']['value']:.3f} s, {result['difference']['value']:+.3f} s")
    return result


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
            pairs("`import osler`", nothing, [*python, "-c", "import osler"], cwd, runs),
            pairs("`osler explain log-of-zero`", nothing, [*osler(), "explain", "log-of-zero"], cwd, runs),
            pairs("`osler run script.py`", [*python, "script.py"], [*osler(), "run", "script.py"], cwd, runs),
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
