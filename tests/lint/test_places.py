"""The other places that a finding names: in its own text, in another file, in another cell of a notebook."""

from __future__ import annotations

import ast
import json
import textwrap
from pathlib import Path

import pytest

from osler.core.finding import Finding
from osler.lint.facts import Facts
from osler.lint.hit import Hit, line_of
from osler.lint.linter import Linter
from osler.lint.look import look, to_finding
from osler.lint.plan import Plan
from osler.syntax.project import Project
from osler.syntax.values import Site

FIXTURES = Path(__file__).parent / "fixtures"

ENGINE = """\
def learn(loss):
    # the mean of a batch
    loss.backward()
"""
SCRIPT = """\
import torch
from engine import learn

net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(9, 8, 4):
    loss = net(x).pow(2).mean()
    learn(loss)
    opt.step()
"""
MODEL = """\
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)"""
LEARN = """\
def learn(loss):
    loss.backward()
    opt.step()"""


def notebook(path: Path, *cells: str) -> None:
    """Code cells, with text before each: the code cells are numbered 2, 4, 6."""
    both = [
        c for cell in cells for c in ({"cell_type": "markdown", "source": "."}, {"cell_type": "code", "source": cell})
    ]
    path.write_text(json.dumps({"cells": both}))


def only(file: str | Path, rule: str = "missing-zero-grad") -> Finding:
    (finding,) = (n.finding for n in Linter(Plan()).lint(str(file)).noted if n.finding.rule == rule)
    return finding


# --- found by a rule --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absolute", [False, True])
def test_what_was_followed_into_another_file_is_named_with_it(here: Path, absolute: bool) -> None:
    (here / "engine.py").write_text(ENGINE)
    (here / "train.py").write_text(SCRIPT)
    found = only(here / "train.py" if absolute else "train.py")
    assert found.where.line == 6
    assert found.message == (
        "This loop runs backward (line 3 of engine.py) and step (line 9) and never clears the gradients, so each step adds "
        "up all before it."
    )
    assert found.fix == "Call optimizer.zero_grad() in each pass, before line 3 of engine.py."
    assert found.evidence == {"backward": "engine.py:3", "step": 9}


def test_in_its_own_file_a_place_is_a_line(here: Path) -> None:
    (here / "train.py").write_text(SCRIPT.replace("from engine import learn\n", ENGINE))
    found = only("train.py")
    assert "backward (line 4) and step (line 11) and" in found.message
    assert found.fix.endswith("before line 4.")
    assert found.evidence == {"backward": 4, "step": 11}


def test_a_finding_in_the_other_file_names_places_as_seen_from_there(here: Path) -> None:
    head, loop = SCRIPT.splitlines(True)[:5], SCRIPT.splitlines(True)[5:]
    body = "".join(f"    {line}" for line in loop)
    (here / "engine.py").write_text(f"import torch\n{ENGINE}\ndef fit(net, opt):\n{body}")
    (here / "train.py").write_text("".join(head).replace("learn", "fit") + "fit(net, opt)\nopt.step()\n")
    found = only("train.py")
    assert (found.where.file, found.where.line) == ("engine.py", 7)
    assert "backward (line 4) and step (line 10) and" in found.message
    assert found.evidence == {"backward": 4, "step": 10}


def test_a_package_beside_the_finding_s_folder(here: Path) -> None:
    for name, text in (("lib/engine", ENGINE), ("jobs/train", SCRIPT.replace("engine", "work.lib.engine"))):
        path = here / "work" / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()
    (here / "work" / "__init__.py").touch()
    assert "(line 3 of ../lib/engine.py)" in only("work/jobs/train.py").message


def test_in_a_notebook_another_cell_is_named(here: Path) -> None:
    loop = "for x in torch.randn(9, 8, 4):\n    learn(net(x).pow(2).mean())"
    notebook(here / "n.ipynb", MODEL, LEARN, loop)
    found = only("n.ipynb")
    assert (found.where.cell, found.where.line) == (6, 1)
    assert "backward (cell 4, line 2) and step (cell 4, line 3) and" in found.message
    assert found.fix.endswith("before cell 4, line 2.")
    assert found.evidence == {"backward": "cell 4:2", "step": "cell 4:3"}


def test_in_the_same_cell_of_a_notebook_lines_are_those_of_the_cell(here: Path) -> None:
    loop = "for x in torch.randn(9, 8, 4):\n    net(x).pow(2).mean().backward()\n    opt.step()"
    notebook(here / "n.ipynb", MODEL, loop)
    found = only("n.ipynb")
    assert (found.where.cell, found.where.line) == (4, 1)
    assert "backward (line 2) and step (line 3) and" in found.message
    assert found.evidence == {"backward": "cell 4:2", "step": "cell 4:3"}


def test_what_a_notebook_imports_is_named_with_its_file(here: Path) -> None:
    (here / "engine.py").write_text(ENGINE)
    notebook(here / "n.ipynb", SCRIPT)
    assert "backward (line 3 of engine.py) and step (line 9) and" in only("n.ipynb").message


def test_a_sentence_that_begins_with_a_place(here: Path) -> None:
    asks, takes = "torch.use_deterministic_algorithms(True)", "torch.backends.cudnn.benchmark = True"
    seed = "import torch\ntorch.manual_seed(0)\n"
    (here / "train.py").write_text(f"{seed}{asks}\n{takes}\n")
    notebook(here / "n.ipynb", seed + asks, takes)
    assert only("train.py", "nondeterministic-run").message.startswith("Line 3 asks for")
    assert only("n.ipynb", "nondeterministic-run").message.startswith("Cell 2, line 3 asks for")


# --- the words for a place --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "other", "named"),
    [
        ("train.py", "engine.py", "engine.py"),
        ("train.py", "lib/engine.py", "lib/engine.py"),
        ("jobs/train.py", "jobs/engine.py", "engine.py"),
        ("jobs/train.py", "engine.py", "../engine.py"),
        ("/a/b/train.py", "/a/b/lib/engine.py", "lib/engine.py"),
        ("/a/b/train.py", "/a/lib/engine.py", "../lib/engine.py"),
        ("/home/me/work/jobs/train.py", "/opt/lib/engine.py", "/opt/lib/engine.py"),
        ("../other/train.py", "../other/engine.py", "engine.py"),
        ("train.py", "a\nb/engine.py", "a\nb/engine.py"),
    ],
)
def test_how_a_file_is_named(own: str, other: str, named: str) -> None:
    project = Project(lambda path: "x = 1\n")
    module = project.add(Path(own), "x = 1\n", ast.parse("x = 1\n"))
    project.open(Path(other))
    place = Site(other, 1, 0)
    hit = Hit(
        Site(own, 1, 0), f"See ({line_of(place)}).", f"Mend {line_of(place)}.", evidence={"at": place, "of": None}
    )
    found = to_finding("missing-zero-grad", hit, Facts(module, project))
    assert (found.message, found.fix) == (f"See (line 1 of {named}).", f"Mend line 1 of {named}.")
    assert found.evidence == {"at": f"{named}:1", "of": None}


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.py")), ids=lambda p: p.stem)
def test_no_mark_and_no_site_is_left(path: Path) -> None:
    project = Project(lambda p: p.read_text())
    module = project.open(path)
    assert module is not None
    for finding, hit in look(Facts(module, project)):
        told = [finding.message, finding.fix, hit.fix.summary if hit.fix else "", repr(finding.evidence)]
        assert not [t for t in told if "\0" in t or "\\x00" in t]
        assert all(type(value) in (int, float, str, type(None)) for value in finding.evidence.values())


def test_a_fault_spread_over_three_files_is_found_from_the_script_that_joins_them(tmp_path: Path) -> None:
    """None of the files shows it by itself, and the script calls nothing that a rule asks about by name."""
    files = {
        "engine.py": """
        def train_epoch(net, loader, opt, criterion):
            for x, y in loader:
                opt.zero_grad()
                loss = criterion(net(x), y)
                loss.backward()
                opt.step()
        """,
        "model.py": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 3)

            def forward(self, x):
                return torch.softmax(self.body(x), dim=1)
        """,
        "train.py": """
        import torch
        from torch import nn
        import engine
        from model import Net

        def main(loader):
            net = Net()
            engine.train_epoch(net, loader, torch.optim.Adam(net.parameters()), nn.CrossEntropyLoss())
        """,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    linter = Linter(Plan((2, 6)))
    assert linter.lint(str(tmp_path / "engine.py")).noted == linter.lint(str(tmp_path / "model.py")).noted == []
    (noted,) = linter.lint(str(tmp_path / "train.py")).noted
    assert (noted.finding.rule, noted.finding.where.line) == ("double-softmax", 5)
    assert noted.finding.where.file == str(tmp_path / "engine.py") and "(line 11 of model.py)" in noted.finding.message
