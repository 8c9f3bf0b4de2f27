from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from record_examples import make_finding

from osler.catalogue import RULES
from osler.core.finding import Finding
from osler.core.jsonable import dumps
from osler.records import parse
from osler.records.assemble import assemble
from osler.records.follow import Follower
from osler.records.ingest import ingest
from osler.records.journal import Journal
from osler.records.read import read_run

NAME = "journal-4711-99.jsonl"


def write(run_dir: Path, *lines: bytes | dict[str, object], name: str = NAME) -> Path:
    path = run_dir / name
    with path.open("ab") as f:
        for line in lines:
            f.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
    return path


def start(**more: object) -> dict[str, object]:
    return {"t": "start", "schema": 1, "pid": 4711, "ppid": 1, "time": 1.7e9, "rank": None, "world": None, **more}


def record(line: int, **more: object) -> dict[str, object]:
    f = make_finding(line=line)
    return {"t": "finding", "key": f.key, "finding": json.loads(dumps(f.to_dict())), **more}


def test_a_torn_last_line_is_passed_over(run_dir: Path) -> None:
    write(run_dir, start(), record(1), b'{"t": "finding", "key": "x", "fin')
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [1]
    assert report.notes == ["process 4711 ended without saying so (killed?)"]


def test_garbage_lines_are_left_out_and_said(run_dir: Path) -> None:
    write(run_dir, start(), b"\x00\xff\n", b"[1]\n", b"{}\n", b"\n", b'{"t": 3}\n', record(2), {"t": "end", "steps": 1})
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [2]
    assert report.notes == ["4 records of process 4711 (main) could not be read and are left out"]


def test_unknown_records_of_a_later_version_are_passed_over(run_dir: Path) -> None:
    later = record(1)
    later["finding"]["colour"] = "red"  # type: ignore[index]
    later["finding"]["where"]["planet"] = "Mars"  # type: ignore[index]
    write(run_dir, start(schema=2), {"t": "hologram", "x": 1}, later, {"t": "end", "steps": 1})
    report = assemble(run_dir)
    assert len(report.findings) == 1
    assert not report.notes


@pytest.mark.parametrize(
    "line",
    [
        b'{"t": "points", "series": "loss", "steps": [1e999], "values": [1]}\n',
        b'{"t": "points", "series": "loss", "steps": {"a": 1}, "values": 3}\n',
        b'{"t": "points", "series": ["loss"], "steps": [1], "values": [1]}\n',
        b'{"t": "points", "series": "loss", "steps": [true], "values": [false]}\n',
        b'{"t": "finding", "key": 3, "finding": []}\n',
        b'{"t": "finding", "key": 3, "finding": {"rule": "x", "severity": "huge", "confidence": "x", "message": ""}}\n',
        b'{"t": "again", "key": [], "count": "many", "last_step": {}}\n',
        b'{"t": "matrix", "series": "m", "rows": ["a"], "steps": [1], "offset": -5, "shape": [1, 1]}\n',
        b'{"t": "matrix", "series": "m", "rows": ["a"], "steps": [1], "offset": 1e30, "shape": [1e30, 1]}\n',
        b'{"t": "matrix", "series": "m", "rows": [], "steps": [], "offset": 0, "shape": [0, 0]}\n',
        b'{"t": "not_checked", "what": {}, "why": 3}\n',
        b'{"t": "overhead", "figures": {"ratio": "fast", "steps": [], "seconds": NaN}}\n',
        b'{"t": "overhead", "figures": {"ratio": 1e999, "steps": 1e999, "seconds": "NaN"}}\n',
        b'{"t": "environment", "facts": [1]}\n',
        b'{"t": "layers", "rows": {"a": 1}}\n',
        b'{"t": "note", "text": 3}\n',
        b'{"t": "end", "steps": "x"}\n',
        b'{"t": "start", "pid": "x", "time": "NaN", "argv": 3, "rank": "zero", "ppid": 1e999}\n',
        b'{"t": "overhead", "figures": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"t": "environment", "facts": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}\n",
        b'{"t": "environment", "facts": {"a": 1' + b"0" * 5000 + b"}}\n",
    ],
)
def test_hostile_records_change_nothing(run_dir: Path, line: bytes) -> None:
    write(run_dir, start(), record(1), line, record(2), {"t": "end", "steps": 1})
    report = assemble(run_dir)
    assert [f.where.line for f in report.findings] == [1, 2]
    assert not [s for s in report.series if s.name in ("m", "loss")]
    dumps(report.to_dict(RULES))


def test_huge_numbers_are_bounded(run_dir: Path) -> None:
    huge = record(1)
    huge["finding"] |= {"first_step": 10**30, "count": -4, "evidence": {"n": 10**400, "m": 10**30}}  # type: ignore[operator]
    huge["finding"]["where"] = {"line": 10**30, "file": ["x"], "rank": 1.5, "module": "net"}  # type: ignore[index]
    points = {"t": "points", "series": "loss", "steps": [10**30, -(10**30)], "values": [10**400, 1]}
    write(run_dir, start(), huge, points)
    (found,) = assemble(run_dir).findings
    assert found.first_step == found.where.line == 2**63 - 1
    assert (found.count, found.where.file, found.where.rank, found.where.module) == (1, None, None, "net")
    assert found.evidence == {"n": float("inf"), "m": 1e30}
    (curve,) = assemble(run_dir).series
    assert (curve.steps, curve.values) == ([-(2**63), 2**63 - 1], [1.0, float("inf")])


def test_findings_are_merged_by_key_in_one_process_and_kept_apart_between(run_dir: Path) -> None:
    again = {"t": "again", "key": make_finding(line=1).key, "count": 9, "last_step": 44}
    write(run_dir, start(), record(1), again, record(1), {"t": "end", "steps": 50})
    write(run_dir, start(time=1.8e9), record(1), {"t": "end", "steps": 5}, name="journal-4712-99.jsonl")
    assert [(f.count, f.last_step) for f in assemble(run_dir).findings] == [(10, 44), (1, 3)]


def test_findings_of_several_processes_come_in_the_order_seen(run_dir: Path) -> None:
    write(run_dir, start(rank=0, world=2), record(1, time=1.7e9 + 5), record(2, time=1.7e9 + 9))
    write(run_dir, start(rank=1, world=2), record(3, time=1.7e9 + 7), name="journal-4712-99.jsonl")
    findings = assemble(run_dir).findings
    assert [(f.where.line, f.where.rank) for f in findings] == [(1, 0), (3, 1), (2, 0)]


def test_one_rank_alone_is_no_rank(run_dir: Path) -> None:
    write(run_dir, start(rank=0, world=1), record(1))
    assert assemble(run_dir).findings[0].where.rank is None


def test_processes_are_labelled(run_dir: Path) -> None:
    points = {"t": "points", "series": "loss", "steps": [0], "values": [1]}
    subject = json.loads((run_dir / "subject.json").read_text())
    (run_dir / "subject.json").write_text(json.dumps({**subject, "parent_pid": 77}))
    write(run_dir, start(ppid=4712), points, name="journal-4711-1.jsonl")
    write(run_dir, start(ppid=77), points, name="journal-4712-1.jsonl")
    write(run_dir, start(ppid=4712, rank=1), points, name="journal-4713-1.jsonl")
    write(run_dir, start(ppid=4713, rank=1), points, name="journal-4714-1.jsonl")
    assert [s.source for s in assemble(run_dir).series] == ["main", "pid 4711", "rank 1", "rank 1 (pid 4714)"]


def test_a_launcher_in_between_does_not_take_the_main_process_away(run_dir: Path) -> None:
    (run_dir / "subject.json").write_text(json.dumps({"parent_pid": 77}))
    write(run_dir, start(ppid=500), {"t": "points", "series": "loss", "steps": [0], "values": [1]})
    assert [s.source for s in assemble(run_dir).series] == ["main"]


def test_what_was_not_checked_is_said_once_and_rules_are_known(run_dir: Path) -> None:
    rule = next(iter(RULES))
    twice = [{"t": "not_checked", "what": what, "why": "compiled"} for what in (rule, "validation", rule)]
    write(run_dir, start(), *twice)
    write(run_dir, start(), *twice, name="journal-4712-99.jsonl")
    said = [(n.what, n.is_rule) for n in assemble(run_dir).not_checked]
    assert said[:2] == [(rule, True), ("validation", False)]
    # neither process says that it ended
    assert {what for what, _ in said[2:]} == {"what is judged when the training ends"}


def test_a_process_that_trained_nothing_is_not_called_killed(run_dir: Path) -> None:
    write(run_dir, start(), {"t": "awake", "torch": "2.0"})
    assert assemble(run_dir).notes == []


def test_a_process_that_still_runs_is_not_called_killed(run_dir: Path) -> None:
    j = Journal(str(run_dir))
    j.note("x")
    assert assemble(run_dir).notes == ["x"]


def test_steps_without_an_end_are_taken_from_what_is_there(run_dir: Path) -> None:
    write(run_dir, start(), {"t": "points", "series": "loss", "steps": [0, 41], "values": [1, 2]})
    assert assemble(run_dir).subject["steps"] == 42
    write(run_dir, {"t": "end", "steps": 50})
    assert assemble(run_dir).subject["steps"] == 50


def test_an_arrays_file_cut_short_gives_its_whole_columns(run_dir: Path) -> None:
    matrix = {"t": "matrix", "series": "m", "rows": ["a", "b"], "steps": [5, 6, 7], "offset": 0, "shape": [3, 2]}
    more = {"t": "matrix", "series": "m", "steps": [8], "offset": 24, "shape": [1, 2]}
    write(run_dir, start(), matrix, more)
    (run_dir / "arrays-4711-99.f32").write_bytes(struct.pack("<5f", 1, 2, 3, 4, 5))
    (heat,) = assemble(run_dir).series
    assert (heat.kind, heat.rows, heat.steps, heat.values) == ("heatmap", ["a", "b"], [5, 6], [[1, 2], [3, 4]])
    (run_dir / "arrays-4711-99.f32").unlink()
    assert assemble(run_dir).series == []


def test_rows_that_change_are_joined(run_dir: Path) -> None:
    j = Journal(str(run_dir))
    j.matrix("m", ["a", "b"], [0], [[1.0, 2.0]])
    j.matrix("m", ["b", "c"], [1], [[3.0, 4.0]])
    j.close(2)
    (heat,) = assemble(run_dir).series
    assert heat.rows == ["a", "b", "c"]
    assert dumps(heat.to_dict()["values"]) == '[[1.0, 2.0, "NaN"], ["NaN", 3.0, 4.0]]'


def test_long_heat_maps_are_joined_by_their_largest_values(run_dir: Path) -> None:
    j = Journal(str(run_dir))
    for i in range(5000):
        j.matrix("m", ["a", "b"], [i], [[9.0 if i == 1234 else 0.0, float("nan") if i == 4321 else 1.0]])
    j.close(5000)
    (heat,) = assemble(run_dir).series
    assert len(heat.steps) <= 2048
    columns = list(zip(*heat.values, strict=True))  # type: ignore[arg-type]
    assert max(columns[0]) == 9.0
    assert sum(v != v for v in columns[1]) == 1


def test_a_pipe_or_folder_with_a_journals_name_is_no_journal(run_dir: Path) -> None:
    os.mkfifo(run_dir / "journal-1-1.jsonl")
    (run_dir / "journal-2-2.jsonl").mkdir()
    (run_dir / "journal-3-3.jsonl").symlink_to(run_dir / "nowhere")
    assert read_run(run_dir) == []
    assert assemble(run_dir).findings == []


def test_an_overlong_line_is_skipped(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "MAX_LINE", 1000)
    write(run_dir, start(), b'{"t": "note", "text": "' + b"x" * 5000 + b'"}\n', record(1), {"t": "end", "steps": 1})
    report = assemble(run_dir)
    assert len(report.findings) == 1
    assert len(report.notes) == 1


def test_a_folder_that_is_not_there_gives_an_empty_report(tmp_path: Path) -> None:
    report = assemble(tmp_path / "nothing")
    assert (report.findings, report.notes, report.subject) == ([], [], {"kind": "run", "run": "nothing"})


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"kind": 3, "environment": 7, "parent_pid": "x"}', b"\xff", b"[" * 9999]
)
def test_any_subject_is_survived(run_dir: Path, text: bytes) -> None:
    (run_dir / "subject.json").write_bytes(text)
    write(run_dir, start(), record(1))
    assert len(assemble(run_dir).findings) == 1


def _whole_run() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        j = Journal(folder)
        j.awake("2.13")
        j.environment({"torch": {"version": "2.13"}, "threads": 2})
        for i in range(3):
            j.points("loss", [i], [1 / (i + 1)])
            j.matrix("gradient_norm", ["a", "b"], [i], [[1.0, 2.0]])
        j.finding(make_finding())
        j.again(make_finding().key, 4, 7)
        j.not_checked("x", "y")
        j.overhead({"ratio": 1.02, "steps": 3})
        j.layers([{"module": "a", "inputs": [{"shape": [1, 2]}]}])
        j.note("n")
        j.close(3)
        out = {}
        for path in Path(folder).iterdir():
            out[NAME if path.suffix == ".jsonl" else "arrays-4711-99.f32"] = path.read_bytes()
        out["subject.json"] = b'{"kind": "run", "command": ["a", "b"], "parent_pid": 3, "parent_start": 4}'
        return out


WHOLE = _whole_run()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_damage_never_raises(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        for name, whole in WHOLE.items():
            damaged = bytearray(whole)
            for _ in range(data.draw(st.integers(0, 6))):
                at = data.draw(st.integers(0, max(len(damaged) - 1, 0)))
                what = data.draw(st.sampled_from(["flip", "cut", "insert", "delete", "swap"]))
                if what == "flip" and damaged:
                    damaged[at] = data.draw(st.integers(0, 255))
                elif what == "cut":
                    del damaged[at:]
                elif what == "insert":
                    damaged[at:at] = data.draw(
                        st.binary(max_size=12) | st.sampled_from([b"9" * 30, b"1e999", b"{}", b"\n"])
                    )
                elif what == "delete":
                    del damaged[at : at + data.draw(st.integers(1, 40))]
                elif what == "swap":
                    old, new = data.draw(st.permutations([b"null", b"3", b'"a"', b"[]", b"{}", b"-1", b"true"]))[:2]
                    damaged = damaged.replace(old, new)
            (run_dir / name).write_bytes(damaged)
        report = assemble(run_dir)
        json.loads(dumps(report.to_dict(RULES)))
        follower = Follower(run_dir)
        follower.poll()
        follower.notes()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_damage_is_ingested_and_reads_the_same(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder, "runs", "20250131-120000-00aa")
        run_dir.mkdir(parents=True)
        for name, whole in WHOLE.items():
            at = data.draw(st.integers(0, len(whole) - 1))
            (run_dir / name).write_bytes(whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + 1 :])
        before = dumps(assemble(run_dir).to_dict(RULES))
        assert ingest(run_dir) == []
        assert dumps(assemble(run_dir).to_dict(RULES)) == before


def test_finding_types_are_checked(finding: Callable[..., Finding]) -> None:
    facts = json.loads(dumps(finding().to_dict()))
    assert parse.finding(facts) is not None
    for name in ("rule", "severity", "confidence", "message"):
        assert parse.finding({**facts, name: 3}) is None
        assert parse.finding({k: v for k, v in facts.items() if k != name}) is None
    assert parse.finding({**facts, "touches": "ab", "evidence": 3, "fix": None, "confirmed": "yes"}) is not None
