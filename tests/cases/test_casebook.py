"""The casebook that ships with osler: in order, and a few of its cases verified with the real `osler run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from osler.cases.library import load_cases, load_healthy
from osler.cases.verdict import Outcome
from osler.cases.verify import verify_healthy


def osler(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`osler ARGS…` in a process of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSLER_")}
    return subprocess.run(
        [sys.executable, "-m", "osler", *args],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_the_casebook_is_in_order() -> None:
    cases = load_cases()
    assert len(cases) == len({c.id for c in cases})
    assert len(load_healthy()) >= 25


@pytest.mark.slow
def test_cases_pass_under_osler(tmp_path: Path) -> None:
    ended = osler("cases", "verify", "log-of-zero", "dead-relu", "--no-healthy", "--json", "out.json", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    verdicts = json.loads((tmp_path / "out.json").read_text())["verdicts"]
    assert {v["rule"] for v in verdicts} == {"log-of-zero", "dead-relu"}
    assert all(v["outcome"] == "PASS" and v["silent"] and v["rule_right"] for v in verdicts)
    assert all(v["line_right"] for v in verdicts if v["budget"] == "none")


@pytest.mark.slow
def test_one_healthy_script_is_silent_under_osler() -> None:
    cheapest = min(load_healthy(), key=lambda h: h.cost_s)
    verdict = verify_healthy(cheapest, "default")
    assert (verdict.outcome, verdict.reason) == (Outcome.PASS, "")


@pytest.mark.slow
def test_a_new_case_is_invalid_under_osler(tmp_path: Path) -> None:
    made = osler("cases", "new", "my-fault", "--rule", "log-of-zero", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    ended = osler("cases", "verify", "my-fault", "--casebook", ".", "--budget", "none", cwd=tmp_path)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "INVALID my-fault (budget none): the fault was not there: `measured > 1.0` is false" in ended.stdout


@pytest.mark.slow
def test_a_side_can_be_run(tmp_path: Path) -> None:
    ended = osler("cases", "run", "dead-relu", "--budget", "none", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "dead-relu" in ended.stderr
    assert not list(tmp_path.iterdir())
