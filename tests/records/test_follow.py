from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from osler.core.finding import Finding
from osler.records.follow import Follower
from osler.records.journal import Journal


def test_each_finding_comes_once_and_at_once(run_dir: Path, finding: Callable[..., Finding]) -> None:
    follower = Follower(run_dir)
    assert follower.poll() == []
    assert not follower.awake
    j = Journal(str(run_dir))
    j.awake("2.13")
    assert follower.poll() == []
    assert follower.awake
    j.finding(finding(line=1))
    assert [(source, f.where.line) for source, f in follower.poll()] == [("main", 1)]
    j.finding(finding(line=1))
    j.points("loss", [0], [1.0])
    j.finding(finding(line=2))
    assert [f.where.line for _, f in follower.poll()] == [2]
    assert follower.poll() == []


def test_notes_come_once(run_dir: Path) -> None:
    follower, j = Follower(run_dir), Journal(str(run_dir))
    j.note("the trace is thinned")
    j.note("the trace is thinned")
    follower.poll()
    assert follower.notes() == ["the trace is thinned"]
    assert follower.notes() == []


def test_a_torn_line_waits_for_its_rest(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir))
    j.finding(finding())
    (path,) = run_dir.glob("journal-*")
    whole = path.read_bytes()
    follower = Follower(run_dir)
    for cut in range(0, len(whole), 5):
        path.write_bytes(whole[:cut])
        assert follower.poll() == []
    path.write_bytes(whole)
    assert len(follower.poll()) == 1


def test_garbage_and_vanishing_files_are_passed_over(run_dir: Path, finding: Callable[..., Finding]) -> None:
    follower, j = Follower(run_dir), Journal(str(run_dir))
    j.note("x")
    (path,) = run_dir.glob("journal-*")
    with path.open("ab") as f:
        f.write(b'{"t": "finding", "finding": {"rule": 3}}\n{"t": "note", "text": 4}\n\xff"start"\n{"t": "start"}\n')
    j.finding(finding())
    assert len(follower.poll()) == 1
    path.unlink()
    assert follower.poll() == []
    (run_dir / "subject.json").unlink()
    run_dir.rmdir()
    assert follower.poll() == []


def test_several_ranks_live(run_dir: Path, child: Callable[..., subprocess.Popen[str]]) -> None:
    body = """
        j.awake("2.13")
        for i in range(20):
            j.points("loss", list(range(1000)), [0.5] * 1000)
            j.finding(f(line=i))
        j.close(20)
    """
    processes = [child(body, RANK=str(r), WORLD_SIZE="2") for r in range(2)]
    follower = Follower(run_dir)
    seen: list[tuple[str, int | None]] = []
    until = time.monotonic() + 60
    while any(p.poll() is None for p in processes):
        assert time.monotonic() < until
        seen += [(source, f.where.line) for source, f in follower.poll()]
        time.sleep(0.005)
    seen += [(source, f.where.line) for source, f in follower.poll()]
    for rank in range(2):
        assert [line for source, line in seen if source == f"rank {rank}"] == list(range(20))


def test_polling_a_long_journal_is_cheap(run_dir: Path, finding: Callable[..., Finding]) -> None:
    j = Journal(str(run_dir))
    for i in range(0, 100_000, 1000):
        j.points("loss", list(range(i, i + 1000)), [0.1] * 1000)
    j.finding(finding())
    follower = Follower(run_dir)
    found = follower.poll()
    while not found:
        found = follower.poll()
    start = time.perf_counter()
    for _ in range(100):
        follower.poll()
    assert (time.perf_counter() - start) / 100 < 0.01  # measured: 0.1 ms


def test_the_parents_own_child_is_main(run_dir: Path, finding: Callable[..., Finding]) -> None:
    (run_dir / "subject.json").write_text(json.dumps({"parent_pid": 77}))
    start = {"t": "start", "pid": 5, "ppid": 77}
    record = {"t": "finding", "key": "k", "finding": finding(evidence={}).to_dict()}
    for pid, ppid in ((5, 77), (6, 5)):
        lines = [json.dumps({**start, "pid": pid, "ppid": ppid}), json.dumps(record)]
        (run_dir / f"journal-{pid}-1.jsonl").write_text("\n".join(lines) + "\n")
    assert [source for source, _ in Follower(run_dir).poll()] == ["main", "pid 6"]
