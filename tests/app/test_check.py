"""`osler check` and `osler profile` as a pipeline sees them: exit codes, streams, files, one-line errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.cli.check import app as checks
from osler.data.checks import CHECKS


def osler(folder: Path, *words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "osler", *words], cwd=folder, input=stdin, capture_output=True, timeout=240, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months of a table in which one column moves."""
    where = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    n = 4000
    for name, shift in (("before", 0.0), ("after", 1.0), ("again", 0.0)):
        table = pa.table({"age": rng.normal(40 + 10 * shift, 10, n), "income": rng.lognormal(10, 1, n)})
        pq.write_table(table, where / f"{name}.parquet")
    return where


def test_every_check_is_a_verb_and_every_verb_a_check() -> None:
    verbs = {c.name or c.callback.__name__ for c in checks.registered_commands if c.callback}
    assert verbs == set(CHECKS)


def test_a_finding_is_exit_code_1_and_goes_to_stdout(folder: Path) -> None:
    done = osler(folder, "check", "drift", "before.parquet", "after.parquet")
    assert done.returncode == 1
    assert re.search(r"warning\[feature-drift\].*'age' drifted", done.stdout)
    assert "'income' drifted" not in done.stdout
    assert done.stderr == ""


def test_nothing_found_is_exit_code_0_and_quiet_says_nothing(folder: Path) -> None:
    done = osler(folder, "check", "drift", "before.parquet", "again.parquet", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_on_stdout_is_nothing_but_json(folder: Path) -> None:
    done = osler(folder, "check", "drift", "before.parquet", "after.parquet", "--json", "-", "--html", "page.html")
    report = json.loads(done.stdout)
    assert [f["where"]["column"] for f in report["findings"]] == ["age"]
    assert report["subject"]["command"][:3] == ["osler", "check", "drift"]
    assert {s["kind"] for s in report["series"]} == {"histogram"}
    assert "feature-drift" in done.stderr
    assert "<svg" in (folder / "page.html").read_text()


def test_levels_and_selection(folder: Path) -> None:
    words = ("check", "drift", "before.parquet", "after.parquet", "-q")
    assert osler(folder, *words, "--fail-on", "error").returncode == 0
    assert osler(folder, *words, "--ignore", "feature-drift").returncode == 0
    assert osler(folder, *words, "--set", "drift.ks=0.9", "--set", "drift.wasserstein=5").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("drift", "befor.parquet", "after.parquet"), "before.parquet"),
        (("drift", "before.parquet", "after.parquet", "--columns", "agee"), "age"),
        (("drift", "before.parquet", "after.parquet", "--set", "drift.kss=1"), "drift.ks"),
        (("drift", "before.parquet", "after.parquet", "--json", "no/such/folder.json"), "no folder"),
        (("splits", "--train", "before.parquet", "--eval", "after.parquet", "--feature-time", "x"), "NAME=COLUMN"),
        (("labels", "--labels", "before.parquet", "--ranked", "x.csv"), "--pred-probs"),
        (("drift", "before.parquet"), "CURRENT"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = osler(folder, "check", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("osler: ") and done.stderr.count("\n") == 1
    assert said in done.stderr


def test_data_from_a_pipe(folder: Path) -> None:
    done = osler(folder, "check", "drift", "before.parquet", "-", "-q", stdin=(folder / "after.parquet").read_bytes())
    assert done.returncode == 1


def test_a_profile_stands_for_its_data(folder: Path) -> None:
    made = osler(folder, "profile", "make", "before.parquet", "-o", "before.profile")
    assert (made.returncode, made.stderr) == (0, "")
    assert (folder / "before.profile").stat().st_size < 40_000
    shown = json.loads(osler(folder, "profile", "show", "before.profile", "--json").stdout)
    assert shown["rows"] == 4000 and [c["column"] for c in shown["columns"]] == ["age", "income"]
    assert osler(folder, "check", "drift", "before.profile", "after.parquet", "-q").returncode == 1
    assert osler(folder, "check", "drift", "before.profile", "again.parquet", "-q").returncode == 0


def test_profiles_of_parts_add_up(folder: Path) -> None:
    osler(folder, "profile", "make", "before.parquet", "-o", "ref.profile")
    for name in ("after", "again"):
        osler(folder, "profile", "make", f"{name}.parquet", "--edges-of", "ref.profile", "-o", f"{name}.profile")
    merged = osler(folder, "profile", "merge", "after.profile", "again.profile", "-o", "both.profile")
    assert merged.returncode == 0, merged.stderr
    assert json.loads(osler(folder, "profile", "show", "both.profile", "--json").stdout)["rows"] == 8000
    assert osler(folder, "profile", "show", "after.parquet").returncode == 2


def test_a_monitor_goes_on_from_its_state(folder: Path) -> None:
    words = ("check", "monitor", "before.parquet")
    first = osler(folder, *words, "again.parquet", "--window", "1000", "--state", "drift.state", "-q")
    assert first.returncode == 0, first.stderr
    then = osler(folder, *words, "after.parquet", "--window", "1000", "--state", "drift.state")
    assert then.returncode == 1
    assert "age" in then.stdout


def test_labels_are_judged_once_and_written_three_ways(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 1500)
    given = np.where(rng.random(1500) < 0.2, rng.integers(0, 3, 1500), true)
    probs = rng.dirichlet([0.3] * 3, 1500) * 0.3 + np.eye(3)[true] * 0.7
    np.save(tmp_path / "y.npy", given)
    np.save(tmp_path / "p.npy", probs)
    files = ("--ranked", "r.csv", "--soft", "s.npy", "--cleaned", "c.parquet")
    done = osler(
        tmp_path, "check", "labels", "--labels", "y.npy", "--pred-probs", "p.npy", *files, "--classes", "a,b,c"
    )
    assert done.returncode == 1, done.stderr
    assert "warning[label-noise]" in done.stdout and "no place in the source" not in done.stdout
    first = (tmp_path / "r.csv").read_text().splitlines()[1].split(",")
    assert true[int(first[0])] == "abc".index(first[2].strip('"')) != "abc".index(first[1].strip('"'))
    soft = np.load(tmp_path / "s.npy", allow_pickle=False)
    assert soft.shape == (1500, 3) and np.allclose(soft.sum(1), 1, atol=1e-4)
    assert pq.read_table(tmp_path / "c.parquet").column_names == ["given", "suggested", "probability_wrong", "keep"]
