"""The overhead benchmark runs and its tables are well formed; no figure in them is judged here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ESTIMATE = re.compile(r"\d+\.\d{3} \(\d+\.\d{3}–\d+\.\d{3}\)")


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every Markdown table, row by row."""
    found: list[list[list[str]]] = []
    open_table = False
    for line in text.splitlines():
        if line.startswith("|"):
            if not open_table:
                found.append([])
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        open_table = line.startswith("|")
    return found


def test_overhead_prints_well_formed_tables() -> None:
    command = [sys.executable, "benchmarks/overhead.py", "--rows", "1", "--rounds", "2", "--block", "0.005"]
    done = subprocess.run([*command, "--beginnings", "2"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wall, cpu, total, account = tables(done.stdout)
    tools = ["osler", "osler --budget none", "detect_anomaly", "isnan hooks", "item norms"]
    for measure in (wall, cpu, total):
        header, rule, *rows = measure
        assert header == ["training", "loss", "bare ms/step", *tools, "osler, first 64 steps"]
        assert rule == ["---", *["---:"] * (len(header) - 1)]
        assert [row[1] for row in rows] == ["one call", "15 operations"]
        for row in rows:
            assert len(row) == len(header)
            assert float(row[2]) > 0
            for cell in row[3:]:
                assert ESTIMATE.fullmatch(cell), cell
                value, low, high = (float(n) for n in re.findall(r"\d+\.\d{3}", cell))
                assert low <= value <= high
    header, _, *rows = account
    assert [row[2] for row in rows] == ["0.03", "none"] * 2
    assert all(len(row) == len(header) for row in rows)
    assert all(row[6].startswith("100% of ") for row in rows if row[2] == "none")
    assert "- torch: " in done.stdout and "- processor: " in done.stdout
