from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from osler.app.errors import UserError
from osler.app.report import find, load, share
from osler.records.folder import new_run, read_subject, write_subject


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run with one finding, a curve, a dump, and secrets wherever they turn up."""
    run_dir = new_run(tmp_path).run_dir
    code = f"""
        import sys
        from osler.core.finding import Confidence, Finding, Severity, Where
        from osler.records.journal import Journal
        j = Journal({str(run_dir)!r})
        j.environment({{"hostname": "secretbox", "variables": {{"OMP_NUM_THREADS": "2", "HF_TOKEN": "hf_inside"}}}})
        j.points("loss", [0, 1], [1.0, float("nan")])
        j.matrix("gradient_norm", ["a"], [0], [[1.0]])
        j.note("could not reach https://ada:swordfish@example.org/x with verysecretvalue")
        j.finding(Finding("nonfinite-op", Severity.ERROR, Confidence.DEFINITE, "NaN at /home/ada/train.py",
                          Where(file="/home/ada/train.py", line=3), {{"largest": float("inf")}}))
        (j.folder("dumps") / "step-1.safetensors").write_bytes(b"raw inputs")
        j.close(2)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), "--token=tok123456", "--password", "swordfish", "A_KEY=zzz"]
    subprocess.run(command, check=True, timeout=60)
    write_subject(run_dir, {"command": ["/home/ada/train.py", *command[3:]], "exit_code": 1, "seconds": 2.0})
    return run_dir


def test_a_run_is_loaded_by_name_and_by_path(run_dir: Path, tmp_path: Path) -> None:
    below = tmp_path / "src"
    below.mkdir()
    for name, cwd in [(None, tmp_path), ("latest", below), (run_dir.name[:17], tmp_path), (str(run_dir), Path("/"))]:
        report = load(name, cwd)
        assert report.subject["run"] == run_dir.name
        assert [f.rule for f in report.findings] == ["nonfinite-op"]
        assert len(report.series) == 2
    assert (tmp_path / ".osler" / "osler.db").exists()
    assert not list(run_dir.glob("arrays-*"))


def test_what_is_not_there_is_one_sentence(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"there is no run '1999' in .*; the last one is {run_dir.name}"):
        find("1999", tmp_path)
    with pytest.raises(UserError, match="is no run's folder"):
        find("./nowhere", tmp_path)
    with pytest.raises(UserError, match=r"there is no \.osler/ in"):
        load(None, Path("/proc"))


def test_a_run_is_read_even_where_the_database_is_of_no_use(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / ".osler" / "osler.db").mkdir()
    report = load(None, tmp_path)
    assert len(report.findings) == 1
    assert any("cannot be used" in note for note in report.notes)


def test_a_shared_bundle_holds_no_secret_and_no_raw_input(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "verysecretvalue")
    monkeypatch.setenv("HOME", "/home/ada")
    out = share(None, Path("bundle.zip"), tmp_path)
    assert out == tmp_path / "bundle.zip"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with zipfile.ZipFile(out) as bundle:
        assert bundle.namelist() == ["report.json", "environment.json", "README.txt"]
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    for secret in (
        "tok123456",
        "swordfish",
        "zzz",
        "verysecretvalue",
        "hf_inside",
        "secretbox",
        "/home/ada",
        "raw inputs",
    ):
        assert not [name for name, text in texts.items() if secret in text], secret
    report = json.loads(texts["report.json"])
    assert report["subject"]["command"] == ["~/train.py", "--token=***", "--password", "***", "A_KEY=***"]
    assert report["findings"][0]["where"] == {"file": "~/train.py", "line": 3}
    assert report["findings"][0]["evidence"] == {"largest": "Infinity"}
    assert report["series"][0]["values"] == [1.0, "NaN"]
    assert json.loads(texts["environment.json"]) == report["environment"]
    assert report["environment"]["variables"]["OMP_NUM_THREADS"] == "2"


def test_a_bundle_goes_into_a_folder_under_the_runs_name(run_dir: Path, tmp_path: Path) -> None:
    out = share(run_dir.name, tmp_path, tmp_path)
    assert out == tmp_path / f"osler-{run_dir.name}.zip"
    assert not list(tmp_path.glob(".osler-*"))


def test_a_bundle_that_cannot_be_written_is_one_sentence(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none/x\.zip cannot be written: No such file or directory"):
        share(None, Path("none/x.zip"), tmp_path)


def test_the_subject_stays_as_it_was(run_dir: Path, tmp_path: Path) -> None:
    share(None, Path("bundle.zip"), tmp_path)
    assert read_subject(run_dir)["parent_pid"] == os.getpid()
    assert "swordfish" in (run_dir / "subject.json").read_text()
