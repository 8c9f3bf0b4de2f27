"""Checks whose answer depends on the version of torch, and those whose fixture cannot show all they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.core.finding import Confidence, Severity
from osler.lint.checks import nondeterministic_run, state_partial_load, unsafe_load, worker_seed_repeated
from osler.lint.facts import Facts
from osler.lint.look import look
from osler.lint.registry import Check
from osler.syntax.project import Project

NUMPY_IN_WORKERS = """
import numpy as np
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __getitem__(self, i):
        return np.random.normal()


loader = DataLoader(Rows(), num_workers=4)
"""
LOAD = 'import torch\n\nstate = torch.load("model.pt", map_location="cpu")\n'
UNSEEDED = """
import torch
from torch import nn

torch.use_deterministic_algorithms(True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in rows:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
PART = """
def shards(model, files):
    for file in files:
        model.load_state_dict(read(file), strict=False)


def explained(model, state):
    # not strict: the head is new
    model.load_state_dict(state, strict=False)
"""


def found(tmp_path: Path, text: str, check: Check, torch: tuple[int, int] | None = None):
    path = tmp_path / "script.py"
    path.write_text(text)
    project = Project(lambda p: p.read_text())
    module = project.open(path)
    assert module is not None
    return [f for f, _ in look(Facts(module, project, torch), [check])]


@pytest.mark.parametrize(("torch", "lines"), [((1, 8), [8]), ((1, 9), []), ((2, 13), []), (None, [])])
def test_numpy_in_workers(tmp_path: Path, torch: tuple[int, int] | None, lines: list[int]) -> None:
    assert [f.where.line for f in found(tmp_path, NUMPY_IN_WORKERS, worker_seed_repeated, torch)] == lines


@pytest.mark.parametrize(("torch", "lines"), [((2, 5), [3]), ((2, 6), []), (None, [])])
def test_load_without_weights_only(tmp_path: Path, torch: tuple[int, int] | None, lines: list[int]) -> None:
    findings = found(tmp_path, LOAD, unsafe_load, torch)
    assert [f.where.line for f in findings] == lines
    assert all(f.severity is Severity.INFO for f in findings)


def test_the_version_is_named(tmp_path: Path) -> None:
    assert "torch 2.5" in found(tmp_path, LOAD, unsafe_load, (2, 5))[0].message


def test_determinism_without_a_seed(tmp_path: Path) -> None:
    assert [f.where.line for f in found(tmp_path, UNSEEDED, nondeterministic_run)] == [5]
    seeded = UNSEEDED.replace("model = ", "torch.manual_seed(0)\nmodel = ", 1)
    assert found(tmp_path, seeded, nondeterministic_run) == []
    elsewhere = UNSEEDED.replace("import torch\n", "import torch\nfrom tools import seed_all\n", 1)
    assert found(tmp_path, elsewhere, nondeterministic_run) == []


def test_a_state_that_is_a_part_by_design(tmp_path: Path) -> None:
    findings = found(tmp_path, PART, state_partial_load)
    assert [(f.where.line, f.confidence) for f in findings] == [(9, Confidence.POSSIBLE)]
