"""`osler doctor` tries what it says: each answer here comes from a real child process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from osler.app import config, doctor
from osler.app.doctor import Check


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with neither torch nor osler."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def test_here_everything_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSLER_DISABLE", "1")
    (tmp_path / "osler.toml").write_text("ignore = ['dead-relu']\n[dump]\nenabled = false\n")
    checks = doctor.examine(config.load(tmp_path), tmp_path)
    found = by_name(checks)
    for name in ("interpreter", "torch", "start-up hook", "watching", "private torch APIs", "records"):
        assert found[name].state == "ok", found[name]
    assert found["start-up hook"].detail.endswith("live in a new process")
    assert found["osler"] == Check(
        "osler", "off", "OSLER_DISABLE is set: `osler run` starts scripts unwatched", "unset OSLER_DISABLE"
    )
    assert found["rules"].detail == "dead-relu (osler.toml:1)"
    assert found["dumps"].state == "off"
    assert doctor.healthy(checks)
    assert [p.name for p in tmp_path.iterdir()] == ["osler.toml"]


def test_an_interpreter_without_torch_and_osler(tmp_path: Path, bare_python: str) -> None:
    checks = doctor.examine(config.load(tmp_path), tmp_path, bare_python)
    found = by_name(checks)
    assert found["interpreter"].state == "ok"
    assert found["torch"].state == "failed"
    assert "No module named 'torch'" in found["torch"].detail
    assert "--python" in found["torch"].fix
    assert found["start-up hook"].state == "failed"
    assert "watching" not in found
    assert not doctor.healthy(checks)


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    for python, part in ((str(tmp_path / "python"), "No such file"), ("/bin/false", "exit code 1: no message")):
        checks = doctor.examine(config.load(tmp_path), tmp_path, python)
        assert checks[0].state == "failed"
        assert part in checks[0].detail


def test_a_folder_that_cannot_be_written(tmp_path: Path, bare_python: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    loaded = config.load(gone)
    gone.rmdir()
    (tmp_path / "gone").write_text("a file")
    check = doctor._writable(gone)
    assert check.state == "failed"
    assert "Not a directory" in check.detail
    assert "in memory" in check.fix
    assert loaded.file is None


def test_a_planted_nan_that_is_not_found_is_a_failure() -> None:
    facts: dict[str, object] = {"osler": "0", "hooks": ["/site-packages"], "awake": True, "torch": "2.13.0"}
    elsewhere = {"t": "finding", "finding": {"where": {"line": 3}}}
    for records, part in (
        ([], "left no record"),
        ([{"t": "awake"}], "but not the NaN planted in it"),
        ([{"t": "awake"}, elsewhere], "was found at 3"),
        ([{"t": "note", "text": "osler stepped aside"}], "osler stepped aside"),
    ):
        last = list(doctor._watching(facts, records))[-1]
        assert (last.name, last.state) == ("watching", "failed")
        assert part in last.detail


@pytest.mark.parametrize(
    ("version", "state"), [("2.13.0+cpu", "ok"), ("2.6.0", "ok"), ("2.10.0a0+git12", "ok"), ("2.5.1", "failed")]
)
def test_versions_of_torch(version: str, state: str) -> None:
    checks = list(doctor._interpreter("python", {"python": [3, 12, 1], "torch": version}))
    assert [c.state for c in checks] == ["ok", state]


def test_an_untested_python_is_only_noted() -> None:
    checks = list(doctor._interpreter("python", {"python": [3, 15, 0], "torch": "2.13.0"}))
    assert checks[0].state == "note"
    assert "3.10 to 3.13" in checks[0].detail


def test_fallen_back_apis_are_named() -> None:
    checks = list(doctor._private({"osler": "0", "private": {"a": "in use", "b": "missing in torch 9; slower way"}}))
    assert [c.state for c in checks] == ["ok", "note"]
    assert checks[1].detail == "fell back: missing in torch 9; slower way"
