from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osler.core.finding import Finding
from osler.records import buffer, journal
from osler.records.assemble import assemble
from osler.records.journal import Journal
from osler.records.read import read_run


def records(run_dir: Path) -> list[dict[str, object]]:
    (path,) = run_dir.glob("journal-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_nothing_on_disk_before_there_is_something_to_say(run_dir: Path) -> None:
    before = sorted(p.name for p in run_dir.iterdir())
    j = Journal(str(run_dir))
    j.environment({"torch": "2"})
    j.flush()
    j.close(0)
    assert sorted(p.name for p in run_dir.iterdir()) == before


def test_start_comes_first_and_end_last(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir), flush_s=1000)
    j.points("loss", [0, 1], [2.5, float("nan")])
    j.finding(finding())
    j.again(finding().key, 7, 9)
    j.matrix("gradient_norm", ["a", "b"], [0], [[1.0, float("inf")]])
    j.matrix("gradient_norm", ["a", "b"], [1], [[3.0, 4.0]])
    j.overhead({"ratio": 1.5, "steps": 1})
    j.overhead({"ratio": 1.02, "steps": 2})
    j.not_checked("compiled", "the region is compiled")
    j.layers([{"module": "net.0"}])
    j.note("hello")
    j.close(2)
    out = records(run_dir)
    assert [out[0]["t"], out[-1]] == ["start", {"t": "end", "steps": 2}]
    assert out[0]["pid"] == os.getpid()
    assert out[0]["schema"] == 1
    (points,) = [r for r in out if r["t"] == "points"]
    assert points == {"t": "points", "series": "loss", "steps": [0, 1], "values": [2.5, "NaN"]}
    (matrix,) = [r for r in out if r["t"] == "matrix"]
    assert matrix == {
        "t": "matrix",
        "series": "gradient_norm",
        "rows": ["a", "b"],
        "steps": [0, 1],
        "offset": 0,
        "shape": [2, 2],
    }
    (arrays,) = run_dir.glob("arrays-*.f32")
    assert arrays.stat().st_size == 16
    assert [r["figures"] for r in out if r["t"] == "overhead"] == [{"ratio": 1.02, "steps": 2}]
    for path in (*run_dir.glob("journal-*"), arrays):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rows_are_written_once_and_again_when_they_change(run_dir: Path) -> None:
    j = Journal(str(run_dir), flush_s=0)
    for rows in (["a"], ["a"], ["a", "b"], ["a", "b"], ["a"]):
        j.matrix("m", rows, [0], [[1.0] * len(rows)])
    j.close(0)
    assert [r.get("rows") for r in records(run_dir) if r["t"] == "matrix"] == [["a"], None, ["a", "b"], None, ["a"]]


def test_points_wait_and_a_finding_does_not(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir), flush_s=1000)
    j.points("loss", [0], [1.0])
    assert not list(run_dir.glob("journal-*"))
    j.finding(finding())
    assert {r["t"] for r in records(run_dir)} == {"start", "finding", "points"}


def test_buffered_points_are_written_by_size_and_by_time(run_dir: Path) -> None:
    j = Journal(str(run_dir), flush_s=1000)
    for i in range(5000):
        j.points("loss", [i], [float(i)])
    assert sum(len(r["steps"]) for r in records(run_dir) if r["t"] == "points") >= 2000  # type: ignore[arg-type]
    j = Journal(str(run_dir), flush_s=0.05)
    j.points("other", [0], [1.0])
    time.sleep(0.06)
    j.points("other", [1], [1.0])
    assert [r["steps"] for r in records(run_dir) if r.get("series") == "other"] == [[0, 1]]


def test_each_flush_is_one_write_of_whole_lines(
    run_dir: Path, finding: Callable[..., Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (writes.append(bytes(data)), real(fd, data))[1])
    j = Journal(str(run_dir), flush_s=1000)
    j.points("loss", [0], [1.0])
    j.points("lr", [0], [1.0])
    j.finding(finding())
    assert len(writes) == 1
    assert writes[0].endswith(b"\n")


def test_any_input_is_survived(
    run_dir: Path, capfd: pytest.CaptureFixture[str], finding: Callable[..., Finding]
) -> None:
    j = Journal(str(run_dir))
    circle: dict[str, object] = {}
    circle["me"] = circle
    j.finding(finding(evidence=circle))
    j.finding(None)  # type: ignore[arg-type]
    j.points("loss", ["x"], [1.0])  # type: ignore[list-item]
    j.points("loss", [0, 1], [10**400, 1])
    j.points(None, [3], [1.0])  # type: ignore[arg-type]
    j.matrix("m", ["a"], [0], [[1.0, 2.0]])
    j.matrix("m", None, None, None)  # type: ignore[arg-type]
    j.environment(None)  # type: ignore[arg-type]
    j.layers(3)  # type: ignore[arg-type]
    j.again(None, "x", "y")  # type: ignore[arg-type]
    j.note("a\ud800b\0c")
    j.not_checked(b"x", object())  # type: ignore[arg-type]
    assert j.folder("../up") is None
    assert j.folder("a\0b") is None
    assert j.folder(None) is None  # type: ignore[arg-type]
    j.close("many")  # type: ignore[arg-type]
    j.close(1)
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    report = assemble(run_dir)
    assert [f.evidence for f in report.findings] == [{}]
    assert "a\ud800b\0c" in report.notes


def test_a_folder_is_private(run_dir: Path) -> None:
    path = Journal(str(run_dir)).folder("dumps")
    assert path == run_dir / "dumps"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_points_are_cheap(run_dir: Path) -> None:
    j = Journal(str(run_dir))
    start = time.perf_counter()
    for i in range(20_000):
        j.points("loss", [i], [0.5])
    assert (time.perf_counter() - start) / 20_000 < 50e-6  # measured: 3 microseconds, with the writes


def test_a_fork_gets_a_journal_of_its_own(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir), flush_s=1000)
    j.points("parents", [0], [1.0])
    told = os.fork()
    if told == 0:
        j.after_fork()
        j.points("childs", [0], [1.0])
        j.close(1)
        os._exit(0)
    os.waitpid(told, 0)
    untold = os.fork()
    if untold == 0:
        j.finding(finding(line=99))
        os._exit(0)
    os.waitpid(untold, 0)
    silent = os.fork()
    if silent == 0:
        j.after_fork()
        j.close(0)
        os._exit(0)
    os.waitpid(silent, 0)
    j.close(5)
    by = {p.pid: p for p in read_run(run_dir)}
    assert by.keys() == {os.getpid(), told, untold}
    assert list(by[os.getpid()].curves) == ["parents"]
    assert list(by[told].curves) == ["childs"]
    assert not by[untold].curves
    assert [f.where.line for f in by[untold].findings.values()] == [99]


def test_a_descriptor_that_the_script_closed_is_not_written_to(run_dir: Path, finding: Callable[..., Finding]) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from record_examples import make_finding
from osler.records.journal import Journal
j = Journal({str(run_dir)!r})
j.finding(make_finding(line=1))
os.closerange(3, 100)
mine = open({str(run_dir / "mine")!r}, "w")
j.finding(make_finding(line=2))
j.close(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert (run_dir / "mine").read_bytes() == b""
    assert [f.where.line for f in assemble(run_dir).findings] == [1, 2]


def test_closed_standard_streams_do_not_lead_into_the_journal(run_dir: Path) -> None:
    code = f"""
import os, sys
from osler.records.journal import Journal
j = Journal({str(run_dir)!r})
j.note("x")
os.open({str(run_dir / "mine")!r}, os.O_WRONLY | os.O_CREAT)
os.write(0, b"words")
j.close(1)
"""
    subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, "-c", code], check=True, timeout=60)
    assert (run_dir / "mine").read_bytes() == b"words"
    assert [r["t"] for r in records(run_dir)] == ["start", "note", "end"]


def test_recording_after_close_goes_on_in_the_same_file(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir))
    j.note("x")
    j.close(1)
    j.finding(finding())
    j.close(2)
    assert [r["t"] for r in records(run_dir)] == ["start", "note", "end", "finding", "end"]


class Disk:
    """Stands in for `os.write` on the journal's files: takes so many bytes and then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.error = errno.ENOSPC
        self.tries = 0
        self._real = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: bytes) -> int:
        if self.room is None:
            return self._real(fd, data)
        self.tries += 1
        if self.room <= 0:
            raise OSError(self.error, os.strerror(self.error))
        n = self._real(fd, bytes(data)[: self.room])
        self.room -= n
        return n


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the disk is read-only"),
        (errno.EACCES, "no permission to write"),
        (errno.EIO, "the disk reports an error"),
    ],
)
def test_a_bad_disk_is_said_once_and_findings_come_at_the_end(
    run_dir: Path,
    finding: Callable[..., Finding],
    disk: Disk,
    capfd: pytest.CaptureFixture[str],
    error: int,
    words: str,
) -> None:
    disk.room, disk.error = 0, error
    j = Journal(str(run_dir), flush_s=0)
    for i in range(100):
        j.points("loss", [i], [1.0])
    j.finding(finding(line=1))
    j.finding(finding(line=2))
    assert capfd.readouterr().err == f"osler: {words} ({run_dir}): going on in memory\n"
    j.close(100)
    err = capfd.readouterr().err.splitlines()
    assert err == [
        "osler: error[nonfinite-op] train.py:1 log made -Infinity at step 3",
        "osler: error[nonfinite-op] train.py:2 log made -Infinity at step 3",
    ]


def test_points_do_not_try_a_bad_disk_again_and_again(run_dir: Path, disk: Disk) -> None:
    disk.room = 0
    j = Journal(str(run_dir), flush_s=0)
    for i in range(1000):
        j.points("loss", [i], [1.0])
    assert disk.tries == 1


def test_when_there_is_room_again_nothing_is_missing(
    run_dir: Path, finding: Callable[..., Finding], disk: Disk, capfd: pytest.CaptureFixture[str]
) -> None:
    j = Journal(str(run_dir), flush_s=0)
    disk.room = 300  # within the second line
    j.finding(finding(line=1))
    j.points("loss", [0], [1.0])
    j.matrix("m", ["a"], [0], [[7.0]])
    j.again(finding(line=1).key, 4, 8)
    disk.room = None
    j.finding(finding(line=2))
    j.close(1)
    assert capfd.readouterr().err.count("\n") == 1
    report = assemble(run_dir)
    assert [(f.where.line, f.count) for f in report.findings] == [(1, 4), (2, 1)]
    assert [(s.name, s.values) for s in report.series] == [("loss", [1.0]), ("m", [[7.0]])]
    assert not report.notes


@pytest.mark.parametrize("room", range(0, 1500, 37))
def test_a_write_cut_short_anywhere_leaves_whole_lines_once(
    run_dir: Path, finding: Callable[..., Finding], disk: Disk, room: int
) -> None:
    j = Journal(str(run_dir), flush_s=1000)
    j.points("loss", [0, 1], [1.0, 2.0])
    j.matrix("m", ["a", "b"], [0, 1], [[1.0, 2.0], [3.0, 4.0]])
    disk.room = room
    j.finding(finding(line=1))
    j.finding(finding(line=2))
    disk.room = None
    j.close(2)
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [1, 2]
    assert [(s.name, s.steps, s.values) for s in report.series] == [
        ("loss", [0, 1], [1.0, 2.0]),
        ("m", [0, 1], [[1.0, 2.0], [3.0, 4.0]]),
    ]
    assert not report.notes


def test_a_torn_line_that_cannot_be_cut_off_stands_alone(
    run_dir: Path, finding: Callable[..., Finding], disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "ftruncate", no)
    j = Journal(str(run_dir))
    disk.room = 700
    j.finding(finding(line=1))
    j.finding(finding(line=2))
    disk.room = None
    j.close(1)
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [1, 2]
    assert len([n for n in report.notes if "could not be read" in n]) == 1


def test_memory_stays_bounded_on_a_bad_disk(run_dir: Path, finding: Callable[..., Finding], disk: Disk) -> None:
    disk.room = 0
    j = Journal(str(run_dir))
    j.note("first")
    rows = [f"layer{i}" for i in range(200)]
    tracemalloc.start()
    for i in range(0, 100_000, 10):
        j.points("loss", range(i, i + 10), [i / 7] * 10)
        j.matrix("gradient_norm", rows, [i], [[0.5] * 200])
        if i % 20 == 0:
            j.not_checked("thing", f"reason {i} " + "x" * 200)
        if i % 1000 == 0:
            j.finding(finding(line=i))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
    disk.room = None
    j.close(100_000)
    report = assemble(run_dir)
    assert len(report.findings) == 100
    curve, heat = report.series
    assert 1000 < len(curve.steps) <= buffer.MAX_POINTS
    assert len(heat.steps) > 100
    assert curve.steps[-1] > 90_000
    assert [n for n in report.not_checked if "were let go" in n.why]
    assert (run_dir / "subject.json").exists()
    assert sum(p.stat().st_size for p in run_dir.glob("journal-*")) < 8e6


def test_a_finding_in_memory_survives_a_full_queue(
    run_dir: Path, finding: Callable[..., Finding], disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "QUEUE_BYTES", 1000)
    disk.room = 0
    j = Journal(str(run_dir))
    for i in range(50):
        j.note(f"note {i} " + "x" * 100)
    j.finding(finding())
    disk.room = None
    j.close(1)
    report = assemble(run_dir)
    assert len(report.findings) == 1
    assert len(report.notes) < 20
    assert [n.why for n in report.not_checked if "were let go" in n.why]


def test_arrays_that_do_not_fit_do_not_stop_the_journal(run_dir: Path, finding: Callable[..., Finding]) -> None:
    code = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from record_examples import make_finding
from osler.records.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
j = Journal({str(run_dir)!r}, flush_s=0)
for i in range(20):
    j.matrix("m", [str(r) for r in range(1000)], [i], [[float(i)] * 1000])
    j.points("loss", [i], [1.0])
j.finding(make_finding())
j.close(20)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert done.stderr == f"osler: the largest allowed file size is reached ({run_dir}): going on in memory\n"
    report = assemble(run_dir)
    assert len(report.findings) == 1
    (curve,) = [s for s in report.series if s.name == "loss"]
    assert curve.steps == list(range(20))
    (heat,) = [s for s in report.series if s.name == "m"]
    assert [v[0] for v in heat.values] == [0.0, 1.0, 2.0, 3.0, 4.0]  # type: ignore[index]


def test_a_folder_that_was_deleted_is_said_and_findings_are_printed(
    run_dir: Path, finding: Callable[..., Finding], capfd: pytest.CaptureFixture[str]
) -> None:
    j = Journal(str(run_dir))
    j.finding(finding(line=1))
    shutil.rmtree(run_dir)
    j.finding(finding(line=2))
    j.close(1)
    err = capfd.readouterr().err.splitlines()
    assert err[0] == f"osler: the folder is gone ({run_dir}): going on in memory"
    assert err[1:] == ["osler: error[nonfinite-op] train.py:2 log made -Infinity at step 3"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    path = tmp_path / "tiny"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is refused here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk(tiny_disk: Path, finding: Callable[..., Finding], capfd: pytest.CaptureFixture[str]) -> None:
    j = Journal(str(tiny_disk), flush_s=0)
    for i in range(3000):
        j.points("loss", [i], [i / 7])
    j.finding(finding(line=1))
    assert capfd.readouterr().err == f"osler: the disk is full ({tiny_disk}): going on in memory\n"
    assert len(assemble(tiny_disk).series[0].steps) < 3000
    subprocess.run(["mount", "-o", "remount,size=4m", str(tiny_disk)], check=True)
    j.finding(finding(line=2))
    j.close(3000)
    assert capfd.readouterr().err == ""
    report = assemble(tiny_disk)
    assert [f.where.line for f in report.findings] == [1, 2]
    assert report.series[0].steps == list(range(3000))


def test_a_read_only_disk(tiny_disk: Path, finding: Callable[..., Finding], capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    j = Journal(str(tiny_disk), flush_s=0)
    j.points("loss", [0], [1.0])
    j.finding(finding(line=1))
    assert j.folder("dumps") is None
    j.close(1)
    err = capfd.readouterr().err.splitlines()
    assert err == [
        f"osler: the disk is read-only ({tiny_disk}): going on in memory",
        "osler: error[nonfinite-op] train.py:1 log made -Infinity at step 3",
    ]
    assert list(tiny_disk.iterdir()) == []


def test_a_child_killed_in_the_middle_loses_nothing_it_had_found(
    run_dir: Path, child: Callable[..., subprocess.Popen[str]]
) -> None:
    process = child("""
        i = 0
        j.awake("2.0")
        while True:
            j.points("loss", [i], [i / 7])
            j.matrix("m", ["a", "b"], [i], [[1.0, 2.0]])
            if i % 50 == 0:
                j.finding(f(line=i))
                print(i, flush=True)
            i += 1
    """)
    assert process.stdout is not None
    last = 0
    while last < 500:
        last = int(process.stdout.readline())
    process.kill()
    last = int((process.communicate()[0].split() or [last])[-1])
    report = assemble(run_dir)
    lines = [f.where.line for f in report.findings]
    assert lines[: last // 50 + 1] == list(range(0, last + 1, 50))
    assert report.notes == [f"process {process.pid} ended without saying so (killed?)"]
    assert {s.name for s in report.series} == {"loss", "m"}
    assert report.series[0].steps[-1] >= last - 1


def test_several_processes_write_at_once(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    body = """
        rank = int(os.environ["RANK"])
        sys.stdin.readline()
        for i in range(2000):
            j.points("loss", [i], [float(rank)])
            if i % 500 == 0:
                j.finding(f(line=i))
                j.again(f(line=i).key, 3, i)
        j.overhead({"ratio": 1.0 + rank / 100, "steps": 2000, "seconds": 1.5})
        j.close(2000)
    """
    ranks = [child(body, RANK=str(r), WORLD_SIZE="3") for r in range(3)]
    for process in ranks:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in ranks:
        assert process.wait(60) == 0
    report = assemble(run_dir)
    assert sorted((f.where.rank, f.where.line, f.count) for f in report.findings) == [
        (r, line, 3) for r in range(3) for line in (0, 500, 1000, 1500)
    ]
    assert [(s.source, s.steps, set(s.values)) for s in report.series] == [  # type: ignore[arg-type]
        (f"rank {r}", list(range(2000)), {float(r)}) for r in range(3)
    ]
    assert report.overhead == {"ratio": 1.02, "steps": 6000, "seconds": 4.5}
    assert not report.notes


def test_an_exec_goes_on_in_the_same_journal(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    again = (
        "from record_examples import make_finding as f; from osler.records.journal import Journal; import sys;"
        "j = Journal(sys.argv[1]); j.finding(f(line=2)); j.matrix('m', ['a'], [1], [[2.0]]); j.close(9)"
    )
    process = child(f"""
        j.finding(f(line=1))
        j.matrix("m", ["a"], [0], [[1.0]])
        j.flush()
        os.environ["PYTHONPATH"] = sys.path[0]
        os.execv(sys.executable, [sys.executable, "-c", {again!r}, run_dir])
    """)
    assert process.communicate(timeout=60)[1] == ""
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [1, 2]
    assert [s.values for s in report.series] == [[[1.0], [2.0]]]
    assert not report.notes


def test_the_writer_imports_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import osler.records.journal, osler.records.memory;"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    out = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    if out.returncode:  # an editable install is found through site-packages
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.split() == ["osler"]
