"""Whether drift is judged in bounded memory on files larger than it: `python benchmarks/scale.py`.

Writes two Parquet files of 10 million rows and 50 columns of float64 (4 GB each) block by block into a temporary
folder, the second with every tenth column moved by half a standard deviation, and compares them in a process of its
own. Its peak resident memory must stay within 1 GiB and the columns that drifted must be those that were moved. For one
core: `taskset -c 0 python benchmarks/scale.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import facts, machine, progress, table

MIB = 1024 * 1024
EVERY = 10
SHIFT = 0.5

CHILD = """\
import json, resource, sys, time

from osler.data.drift import check_drift

MIB = 1024 * 1024
phases = []


def peak():
    # ru_maxrss would begin with what the parent had in memory when it forked
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // MIB


def told(what, done, total):
    if total and done >= total:
        phases.append([what, time.perf_counter() - start, time.process_time() - cpu, peak()])


before, start, cpu = peak(), time.perf_counter(), time.process_time()
report = check_drift(sys.argv[1], sys.argv[2], progress=told)
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "cpu": time.process_time() - cpu,
    "before": before,
    "peak": peak(),
    "phases": phases,
    "drifted": sorted(f.where.column for f in report.findings if f.rule == "feature-drift"),
}))
"""


def main() -> int:
    """Write the files, compare them, print the table; 1 where memory or the answer is not as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--row-group", type=int, default=1_000_000, help="rows in a row group of the files")
    parser.add_argument("--limit", type=int, default=1024, help="MiB of resident memory that must not be passed")
    parser.add_argument("--folder", type=Path, help="where the files are written; by default the system's")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    about = machine()
    # stopped by a time limit, the files must go too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    need = asked.rows * asked.columns * 8 * 2 * 1.05
    free = shutil.disk_usage(asked.folder or tempfile.gettempdir()).free
    if free < need + (1 << 30):
        print(f"skipped: {need / 1e9:.1f} GB are needed in the temporary folder, {free / 1e9:.1f} GB are free")
        return 0
    with tempfile.TemporaryDirectory(prefix="osler-scale-", dir=asked.folder) as folder:
        paths = [str(Path(folder, name)) for name in ("reference.parquet", "current.parquet")]
        for seed, path in enumerate(paths):
            progress(f"writing {path}")
            write(path, asked.rows, asked.columns, asked.row_group, seed, SHIFT * seed)
        size = sum(Path(path).stat().st_size for path in paths)
        progress("comparing")
        measured = compare(paths)
    moved = sorted(f"c{i}" for i in range(0, asked.columns, EVERY))
    right = measured["drifted"] == moved
    within = measured["peak"] <= asked.limit
    if asked.json:
        print(json.dumps({"machine": about, "bytes": size, "right": right, "within": within, **measured}, indent=2))
    else:
        print(facts(about))
        print(f"\n{asked.rows:,} × {asked.columns} float64 against as many, {size / 1e9:.1f} GB of Parquet\n")
        print(table(["after", "s", "CPU s", "peak MiB"], rows_of(measured)))
        print(f"\npeak {measured['peak']} MiB, {'within' if within else 'ABOVE'} the limit of {asked.limit} MiB")
        print(f"columns that drifted: {'those that were moved' if right else 'NOT those that were moved'}")
    return 0 if right and within else 1


def write(path: str, rows: int, columns: int, group: int, seed: int, shift: float) -> None:
    """One file of normal columns, a row group at a time."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(columns)])
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=False) as writer:
        for start in range(0, rows, group):
            count = min(group, rows - start)
            arrays = [rng.normal(shift if i % EVERY == 0 else 0.0, 1.0, count) for i in range(columns)]
            writer.write_batch(pa.record_batch([pa.array(a) for a in arrays], schema=schema), row_group_size=count)


def compare(paths: list[str]) -> dict[str, Any]:
    """What a process of its own measures of itself."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the comparison failed after {time.perf_counter() - begin:.0f} s:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(measured: dict[str, Any]) -> list[list[str]]:
    """The table's rows: start, phases, end."""
    rows = [["start", "0", "0", str(measured["before"])]]
    for what, seconds, cpu, peak in measured["phases"]:
        rows.append(
            [what.replace(str(Path(what.split()[-1]).parent) + "/", ""), f"{seconds:.1f}", f"{cpu:.1f}", str(peak)]
        )
    rows.append(["verdicts", f"{measured['seconds']:.1f}", f"{measured['cpu']:.1f}", str(measured["peak"])])
    return rows


if __name__ == "__main__":
    sys.exit(main())
