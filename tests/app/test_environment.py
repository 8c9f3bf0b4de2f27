"""The fingerprint holds what decides a result and nothing secret; the diff names what is known to change numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from osler.app import environment
from osler.app.errors import UserError


def test_without_torch_facts_it_imports_no_torch() -> None:
    code = (
        "import json, sys; from osler.app.environment import fingerprint; facts = fingerprint(full=False); "
        "print(json.dumps([facts, 'torch' in sys.modules, 'numpy' in sys.modules]))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    facts, torch, numpy = json.loads(out.stdout)
    assert (torch, numpy) == (False, False)
    assert facts["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["cpu"]["cores"] == os.cpu_count()
    assert facts["packages"]["pydantic"] and "osler" in facts["packages"]
    assert "torch" not in facts


def test_only_listed_variables_are_taken() -> None:
    environ = {
        "OMP_NUM_THREADS": "2",
        "MKL_CBWR": "AVX2",
        "TORCH_LOGS": "dynamo",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
        "PYTHONHASHSEED": "0",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "AWS_SECRET_ACCESS_KEY": "no",
        "TORCH_HUB_TOKEN": "no",
        "PYTORCH_API_KEY": "no",
        "HOME": "/home/u",
        "PATH": "/bin",
        "omp_num_threads": "3",
    }
    found = environment.variables(environ)
    assert list(found) == [
        "CUBLAS_WORKSPACE_CONFIG",
        "MKL_CBWR",
        "OMP_NUM_THREADS",
        "PYTHONHASHSEED",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TORCH_LOGS",
    ]


def test_git_commit_and_dirt(tmp_path: Path) -> None:
    assert environment.git(tmp_path) is None
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    script = tmp_path / "train.py"
    script.write_text("a = 1\n")
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    state = environment.git(tmp_path)
    assert state is not None
    assert state["dirty"] is False
    assert len(str(state["commit"])) == 40
    (tmp_path / "notes.txt").write_text("untracked files do not change the code")
    assert environment.git(tmp_path) == state
    script.write_text("a = 2\n")
    assert environment.git(tmp_path) == {**state, "dirty": True}


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.git(tmp_path) is None


def test_diff_puts_what_changes_numbers_first() -> None:
    a = {
        "osler": "0.1.0",
        "packages": {"numpy": "2.0.0", "rich": "13.0"},
        "torch": {"threads": 2, "cudnn": {"version": None}},
        "gpus": [{"name": "A"}],
        "git": None,
    }
    b = {
        "osler": "0.1.0",
        "packages": {"numpy": "2.1.0", "rich": "14.0"},
        "torch": {"threads": 4, "cudnn": {"version": None}},
        "gpus": [{"name": "A"}, {"name": "B"}],
        "git": {"commit": "c0ffee"},
    }
    found = environment.diff(a, b)
    assert [(d.name, d.a, d.b, bool(d.changes_numbers)) for d in found] == [
        ("git.commit", None, "c0ffee", True),
        ("gpus.1.name", None, "B", True),
        ("packages.numpy", "2.0.0", "2.1.0", True),
        ("torch.threads", 2, 4, True),
        ("packages.rich", "13.0", "14.0", False),
    ]
    assert "how sums are split" in found[3].changes_numbers
    assert environment.diff(a, a) == []


def test_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"packages": {"numpy": "2.0"}}')
    assert environment.read(file) == {"packages": {"numpy": "2.0"}}
    file.write_text('{"osler": "1", "findings": [], "environment": {"python": {"version": "3.12.0"}}}')
    assert environment.read(file) == {"python": {"version": "3.12.0"}}
    for text, message in (("{", "is not JSON"), ("[]", "holds no fingerprint"), ('{"a": 1}', "holds no fingerprint")):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            environment.read(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not JSON"):
        environment.read(file)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        environment.read(tmp_path / "none.json")


def test_sections_of_one_side_are_not_compared() -> None:
    a = {"osler": "1", "torch": {"threads": 2}}
    b = {"osler": "2", "git": None}
    assert [d.name for d in environment.diff(a, b)] == ["osler"]
    assert environment.one_sided(a, b) == ["git", "torch"]


def test_side_that_is_neither_file_nor_run(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"nothing is no file, and no runs are kept here|nothing is no file, and as a run"
    ):
        environment.side("nothing", tmp_path)
    runs = tmp_path / ".osler" / "runs"
    runs.mkdir(parents=True)
    with pytest.raises(UserError, match="nothing is no file, and as a run: "):
        environment.side("nothing", tmp_path)


def test_side_that_is_a_run(tmp_path: Path) -> None:
    run = tmp_path / ".osler" / "runs" / "20250131-120000-1a2b"
    run.mkdir(parents=True)
    (run / "subject.json").write_text(json.dumps({"kind": "run", "environment": {"packages": {"numpy": "2.0"}}}))
    assert environment.side("20250131-120000-1a2b", tmp_path) == {"packages": {"numpy": "2.0"}}
