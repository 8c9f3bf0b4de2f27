from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.records import folder
from osler.records.folder import Home, NoRun, is_live, new_run, prune, read_subject, size, write_subject
from osler.records.journal import Journal
from osler.records.processes import alive, start_ticks


def make(home: Home, name: str, kilobytes: int = 0, **subject: object) -> Path:
    path = home.runs / name
    path.mkdir(parents=True)
    (path / "subject.json").write_text(json.dumps({"exit_code": 0, **subject}))
    (path / "filler").write_bytes(b"x" * 1024 * kilobytes)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / ".osler")


def test_a_new_run(tmp_path: Path) -> None:
    run_dir, line = new_run(tmp_path)
    assert line is None
    assert run_dir.parent == tmp_path / ".osler" / "runs"
    assert folder._RUN.fullmatch(run_dir.name)
    for path in (tmp_path / ".osler", run_dir):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert (tmp_path / ".osler" / ".gitignore").read_text() == "*\n"
    subject = read_subject(run_dir)
    assert (subject["parent_pid"], subject["run"], subject["kind"]) == (os.getpid(), run_dir.name, "run")
    assert stat.S_IMODE((run_dir / "subject.json").stat().st_mode) == 0o600
    assert is_live(run_dir)
    write_subject(run_dir, {"exit_code": 7})
    assert not is_live(run_dir)
    assert read_subject(run_dir)["parent_pid"] == os.getpid()


def test_runs_of_the_same_second_differ(tmp_path: Path) -> None:
    assert len({new_run(tmp_path).run_dir for _ in range(50)}) == 50


def test_git_sees_nothing_of_it(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    new_run(tmp_path)
    out = subprocess.run(["git", "status", "--short"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert out.stdout == ""


@pytest.mark.parametrize(("option", "words"), [("ro", "the disk is read-only"), ("size=4k", "the disk is full")])
def test_a_folder_that_takes_nothing(tmp_path: Path, option: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cwd, temporary = tmp_path / "cwd", tmp_path / "temporary"
    cwd.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(cwd)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is refused here: {done.stderr.strip()}")
    try:
        if option != "ro":
            with pytest.raises(OSError, match="No space"):
                (cwd / "filler").write_bytes(b"x" * 8192)
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        run_dir, line = new_run(cwd)
        assert run_dir.is_relative_to(temporary)
        assert stat.S_IMODE(run_dir.parents[2].stat().st_mode) == 0o700
        assert line == f"osler: {words} ({cwd}/.osler): this run is recorded in {run_dir}"
        assert not list(cwd.glob(".osler/runs/*"))
    finally:
        subprocess.run(["umount", "-l", str(cwd)], check=True)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".osler").write_text("mine")
    run_dir, line = new_run(tmp_path)
    try:
        assert line is not None
        assert line.startswith("osler: ")
        assert (tmp_path / ".osler").read_text() == "mine"
    finally:
        shutil.rmtree(run_dir.parents[2])


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", no)
    with pytest.raises(OSError, match="Read-only"):
        new_run(tmp_path)


def test_the_subject_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = new_run(tmp_path).run_dir
    before = (run_dir / "subject.json").read_bytes()

    def no(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no)
    with pytest.raises(OSError, match="No space"):
        write_subject(run_dir, {"exit_code": 0})
    assert (run_dir / "subject.json").read_bytes() == before
    assert [p.name for p in run_dir.iterdir()] == ["subject.json"]


def test_runs_are_found_by_what_people_type(home: Home) -> None:
    for name in ("20250101-120000-00aa", "20250101-120005-00bb", "20250201-120000-00cc"):
        make(home, name)
    (home.runs / "notes").mkdir()
    (home.runs / "20250301-120000-00dd").symlink_to(home.runs / "20250101-120000-00aa")
    assert [i[16:] for i in home.ids()] == ["00aa", "00bb", "00cc"]
    for name in (None, "latest", "202502", "00cc", "20250201-120000-00cc"):
        assert home.find_run(name).name == "20250201-120000-00cc"
    with pytest.raises(NoRun, match="beginning of 2 runs"):
        home.find_run("202501")
    for name in ("2024", "", "../..", "notes"):
        with pytest.raises(NoRun, match="there is no run"):
            home.find_run(name)
    with pytest.raises(NoRun, match="there are no runs"):
        Home(home.path / "other").find_run(None)


def test_the_nearest_home_is_found_from_below(home: Home, tmp_path: Path) -> None:
    make(home, "20250101-120000-00aa")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for folder_ in (below, tmp_path):
        found = Home.find(folder_)
        assert found is not None
        assert found.path == home.path


def test_a_home_of_another_user_above_is_not_ours(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(home, "20250101-120000-00aa")
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert Home.find(tmp_path / "a") is None


def names(home: Home) -> list[str]:
    return [i[16:] for i in home.ids()]


def test_the_oldest_runs_go(home: Home) -> None:
    for n in range(1, 6):
        make(home, f"2025010{n}-120000-00a{n}")
    assert [p.id[16:] for p in prune(home, 2, 1e9, 1e9, dry_run=True)] == ["00a1", "00a2", "00a3"]
    assert len(home.ids()) == 5
    gone = prune(home, 2, 1e9, 1e9)
    assert [(p.id[16:], p.why) for p in gone] == [(f"00a{n}", "more than 2 runs") for n in (1, 2, 3)]
    assert names(home) == ["00a4", "00a5"]
    assert sorted(p.name[16:] for p in home.runs.iterdir()) == ["00a4", "00a5"]


def test_runs_go_by_age(home: Home) -> None:
    make(home, "20200101-120000-00a1")
    make(home, time.strftime("%Y%m%d-%H%M%S", time.localtime(time.time() - 2 * 86_400)) + "-00a2")
    make(home, time.strftime("%Y%m%d-%H%M%S") + "-00a3")
    assert [p.why for p in prune(home, 100, 1.5, 1e9)] == ["older than 1.5 days"] * 2
    assert names(home) == ["00a3"]


def test_runs_go_by_size_and_the_last_stays(home: Home) -> None:
    for n in range(1, 5):
        make(home, f"2025010{n}-120000-00a{n}", kilobytes=1024)
    gone = prune(home, 100, 1e9, 2.5)
    assert [p.id[16:] for p in gone] == ["00a1", "00a2"]
    assert all(2**20 <= p.bytes < 2**20 + 20_000 for p in gone)
    assert size(home.path) < 2.5 * 2**20
    assert [p.id[16:] for p in prune(home, 100, 1e9, 0)] == ["00a3"]


def test_a_run_that_goes_on_stays(home: Home) -> None:
    me = os.getpid()
    make(home, "20250101-120000-00a1")
    by_parent = make(home, "20250102-120000-00a2")
    (by_parent / "subject.json").write_text(json.dumps({"parent_pid": me, "parent_start": start_ticks(me)}))
    by_child = make(home, "20250103-120000-00a3")
    Journal(str(by_child)).note("x")
    make(home, "20250104-120000-00a4")
    assert [p.id[16:] for p in prune(home, 0, 0, 0)] == ["00a1", "00a4"]
    assert names(home) == ["00a2", "00a3"]


def test_nothing_outside_is_touched(home: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "thesis.txt").write_text("all of it")
    run = make(home, "20250101-120000-00a1")
    (run / "link").symlink_to(outside)
    (home.runs / "20250102-120000-00a2").symlink_to(outside)
    (home.runs / ".gone-link").symlink_to(outside)
    (home.runs / "mine").mkdir()
    (home.path / "osler.db").touch()
    assert [p.id[16:] for p in prune(home, 0, 0, 0)] == ["00a1"]
    assert (outside / "thesis.txt").read_text() == "all of it"
    assert sorted(p.name for p in home.runs.iterdir()) == [".gone-link", "20250102-120000-00a2", "mine"]


def test_a_folder_of_runs_that_is_a_link_is_left_alone(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    make(other, "20250101-120000-00a1")
    home.path.mkdir()
    home.runs.symlink_to(other.runs)
    assert prune(home, 0, 0, 0) == []
    assert names(other) == ["00a1"]


def test_a_removal_that_was_cut_short_is_finished(home: Home) -> None:
    make(home, "20250101-120000-00a1")
    (home.runs / ".gone-20240101-120000-00a0").mkdir()
    assert prune(home, 10, 1e9, 1e9) == []
    assert [p.name for p in home.runs.iterdir()] == ["20250101-120000-00a1"]


def test_processes_are_told_apart_from_later_ones_with_their_pid(child: Callable[..., subprocess.Popen[str]]) -> None:
    process = child("sys.stdin.readline()")
    start = start_ticks(process.pid)
    assert start is not None
    assert alive(process.pid, start)
    assert alive(process.pid, None)
    assert not alive(process.pid, start + 1)
    process.kill()
    while alive(process.pid, start):  # a zombie, until it is waited for, counts as dead
        time.sleep(0.001)
    process.wait()
    for pid in (0, -1, True, "1", None, 2**40, 4.0):
        assert not alive(pid, None)
