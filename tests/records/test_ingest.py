from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from osler.catalogue import RULES
from osler.core.jsonable import dumps
from osler.records import pack
from osler.records.assemble import assemble
from osler.records.folder import Home
from osler.records.ingest import catch_up, ingest
from osler.records.processes import start_ticks
from osler.records.store import Store

RUN = """
    j.awake("2.13")
    for i in range(50):
        j.points("loss", [i], [1 / (i + 1)])
        j.matrix("gradient_norm", ["a", "b"] if i < 25 else ["a", "b", "c"], [i], [[float(i)] * (2 if i < 25 else 3)])
        j.matrix("saturation", ["x"], [i], [[float("nan")]])
    j.finding(f())
    j.not_checked("x", "y")
    j.overhead({"ratio": 1.02, "steps": 50})
"""


@pytest.fixture
def ran(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> Path:
    """A run that trained fifty steps and ended."""
    assert child(RUN + "\n    j.close(50)").communicate(timeout=60)[1] == ""
    return run_dir


def text(run_dir: Path) -> str:
    return dumps(assemble(run_dir).to_dict(RULES))


def names(run_dir: Path) -> list[str]:
    return sorted(str(p.relative_to(run_dir)).split("-")[0] for p in run_dir.rglob("*") if p.is_file())


def stored(run_dir: Path) -> list[tuple[str, int, int | None]]:
    with Store(run_dir.parents[1] / "osler.db") as store:
        return [(r.id, r.errors, r.steps) for r in store.runs()]


def test_arrays_become_parquet_and_the_report_stays_the_same(ran: Path) -> None:
    before = text(ran)
    assert names(ran) == ["arrays", "journal", "subject.json"]
    assert ingest(ran) == []
    assert names(ran) == ["journal", "series/curves", "series/maps", "subject.json"]
    assert text(ran) == before
    assert stored(ran) == [(ran.name, 1, 50)]
    curves = pq.read_table(next(ran.glob("series/curves-*.parquet")))
    assert curves.to_pydict() == {
        "series": ["loss"] * 50,
        "step": list(range(50)),
        "value": [1 / (i + 1) for i in range(50)],
    }
    maps = pq.read_table(next(ran.glob("series/maps-*.parquet")))
    assert maps.num_rows == 100
    assert sorted(json.loads(maps.schema.metadata[b"osler.row_sets"])) == [["a", "b"], ["a", "b", "c"], ["x"]]
    assert pq.ParquetFile(next(ran.glob("series/maps-*.parquet"))).metadata.row_group(0).column(0).compression == "ZSTD"


def test_ingesting_again_is_harmless(ran: Path) -> None:
    ingest(ran)
    before, files = text(ran), {p: p.stat().st_mtime_ns for p in ran.rglob("*")}
    for _ in range(3):
        assert ingest(ran) == []
        assert catch_up(Home(ran.parents[1])) == []
    assert text(ran) == before
    assert {p: p.stat().st_mtime_ns for p in ran.rglob("*")} == files
    assert stored(ran) == [(ran.name, 1, 50)]


@pytest.mark.parametrize(
    "where",
    [
        "osler.records.pack.curves_file",
        "pathlib.Path.rename",
        "pyarrow.parquet.ParquetWriter.write_batch",
        "osler.records.store.Store.put",
        "osler.records.ingest.build",
        "pathlib.Path.unlink",
        "osler.records.ingest._safe_to_remove",
    ],
)
@pytest.mark.parametrize("after", [0, 1])
def test_a_kill_between_any_two_steps_loses_nothing(ran: Path, where: str, after: int) -> None:
    before = text(ran)
    code = f"""
import importlib, os, signal, sys
from pathlib import Path
from osler.records import ingest
owner, name = {where!r}.rsplit(".", 1)
try:
    owner = importlib.import_module(owner)
except ImportError:
    module, cls = owner.rsplit(".", 1)
    owner = getattr(importlib.import_module(module), cls)
real, calls = getattr(owner, name), []
def die(*args, **kwargs):
    calls.append(1)
    if len(calls) > {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(owner, name, die)
ingest.ingest(Path({str(ran)!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr
    assert after or done.returncode
    assert text(ran) == before
    assert catch_up(Home(ran.parents[1])) == []
    assert text(ran) == before
    assert stored(ran) == [(ran.name, 1, 50)]
    assert ingest(ran) == []
    assert not list(ran.glob("arrays-*"))


def test_a_run_whose_parent_was_killed_is_taken_in_by_the_next_reader(
    run_dir: Path, child: Callable[..., subprocess.Popen[str]]
) -> None:
    process = child(RUN + "\n    j.flush()\n    os.kill(os.getpid(), signal.SIGKILL)")
    process.wait(60)
    (run_dir / "subject.json").write_text(json.dumps({"parent_pid": process.pid, "parent_start": 1}))
    assert catch_up(Home(run_dir.parents[1])) == []
    assert stored(run_dir) == [(run_dir.name, 1, 50)]
    assert not list(run_dir.glob("arrays-*"))
    assert assemble(run_dir).notes == [f"process {process.pid} ended without saying so (killed?)"]


def test_a_run_that_goes_on_waits(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    home = Home(run_dir.parents[1])
    process = child(RUN + "\n    j.flush()\n    print(flush=True)\n    sys.stdin.readline()\n    j.close(50)")
    assert process.stdout is not None
    process.stdout.readline()
    assert catch_up(home) == []
    assert not stored(run_dir)
    assert ingest(run_dir) == []  # the parent may: a grandchild of the script can outlive it
    assert list(run_dir.glob("arrays-*"))
    assert not list(run_dir.glob("series/*"))
    process.communicate("\n", timeout=60)
    assert catch_up(home) == []
    assert not list(run_dir.glob("arrays-*"))
    assert assemble(run_dir).notes == []
    me = os.getpid()
    (run_dir / "subject.json").write_text(json.dumps({"parent_pid": me, "parent_start": start_ticks(me)}))
    with Store(home.database) as store:
        before = store.signatures()
    assert catch_up(home) == []
    with Store(home.database) as store:
        assert store.signatures() == before


def test_what_the_parent_says_later_is_taken_in(ran: Path) -> None:
    ingest(ran)
    (ran / "subject.json").write_text(json.dumps({"command": ["train.py"], "exit_code": 9}))
    catch_up(Home(ran.parents[1]))
    with Store(ran.parents[1] / "osler.db") as store:
        assert store.runs()[0].exit_code == 9


def test_a_run_whose_folder_is_gone_is_forgotten(ran: Path) -> None:
    ingest(ran)
    ran.rename(ran.parents[2] / "elsewhere")
    assert catch_up(Home(ran.parents[1])) == []
    assert not stored(ran)


def test_a_damaged_database_comes_back_from_the_runs(ran: Path) -> None:
    ingest(ran)
    for path in ran.parents[1].glob("osler.db-*"):
        path.unlink()
    (ran.parents[1] / "osler.db").write_bytes(b"no database" * 1000)
    (said,) = catch_up(Home(ran.parents[1]))
    assert "was damaged; it is now osler.db.corrupt-" in said
    assert stored(ran) == [(ran.name, 1, 50)]
    assert len(assemble(ran).series) == 3


def test_a_disk_without_room_is_one_line_and_loses_nothing(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = text(ran)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    (said,) = ingest(ran)
    assert said == f"osler: the heat maps of run {ran.name} stay unpacked (No space left on device)"
    assert names(ran) == ["arrays", "journal", "subject.json"]
    assert text(ran) == before
    monkeypatch.undo()
    assert catch_up(Home(ran.parents[1])) == []
    assert names(ran) == ["journal", "series/curves", "series/maps", "subject.json"]


def test_a_database_that_cannot_be_written_is_one_line(ran: Path) -> None:
    (ran.parents[1] / "osler.db").mkdir()
    (said,) = ingest(ran)
    assert said.startswith(f"osler: run {ran.name} is not in the database yet (unable to open database file)")
    (said,) = catch_up(Home(ran.parents[1]))
    assert said.startswith("osler: ")
    assert list(ran.glob("arrays-*"))
    assert len(assemble(ran).findings) == 1


def test_raw_arrays_of_a_damaged_journal_stay(ran: Path) -> None:
    (path,) = ran.glob("journal-*")
    path.write_bytes(path.read_bytes().replace(b'"t": "matrix"', b'"t": "matr', 1))
    assert ingest(ran) == []
    assert list(ran.glob("arrays-*"))


def test_a_parquet_file_that_cannot_be_read_is_said(ran: Path) -> None:
    ingest(ran)
    next(ran.glob("series/maps-*")).write_bytes(b"PAR1 no PAR1")
    report = assemble(ran)
    assert [s.name for s in report.series] == ["loss"]
    assert [n for n in report.notes if n.startswith("the heat maps of process")]


def test_names_that_are_no_text_are_packed(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child("""
        j.points("a\\udcff", [0], [1.0])
        j.matrix("b\\ud800", ["r\\udcff"], [0], [[1.0]])
        j.close(1)
    """)
    assert process.communicate(timeout=60)[1] == ""
    assert ingest(run_dir) == []
    assert [(s.name, s.values) for s in assemble(run_dir).series] == [("a\udcff", [1.0]), ("b\ud800", [[1.0]])]


def test_two_readers_at_once(ran: Path) -> None:
    before = text(ran)
    code = f"from pathlib import Path; from osler.records.ingest import ingest; print(*ingest(Path({str(ran)!r})))"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [p.communicate(timeout=60)[0].strip() for p in started] == [""] * 3
    assert text(ran) == before
    assert stored(ran) == [(ran.name, 1, 50)]
    assert not list(ran.glob("series/.*"))


def test_the_packed_file_is_read_in_stretches() -> None:
    assert list(pack._stretches([])) == []
    assert list(pack._stretches(["a", "a", "b", "a"])) == [(0, 2), (2, 3), (3, 4)]
