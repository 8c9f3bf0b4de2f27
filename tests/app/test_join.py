"""A run's findings with what its source says about them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from osler.app.join import files, join, seen_in_source
from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.settings.lint import Lint

EXPLODES = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.5)
x, y = torch.randn(512, 8), torch.randn(512, 1)
for step in range(80):
    i = torch.randint(0, 512, (32,))
    loss = ((model(x[i]) - y[i]) ** 2).mean()
    loss.backward()
    opt.step()
"""


def finding(rule: str, line: int | None = None, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(rule, severity, Confidence.DEFINITE, "m", Where(file="train.py", line=line))


def test_only_what_explains_the_run_is_added() -> None:
    source = [finding("missing-zero-grad", 8), finding("double-softmax", 3)]
    added, notes = join([finding("exploding-gradient", 12)], source)
    assert [f.rule for f in added] == ["missing-zero-grad"]
    assert added[0].evidence == {"seen": "in the source", "explains": ["exploding-gradient"]}
    assert notes == []


def test_what_was_no_more_than_possible_needs_no_explanation() -> None:
    info = finding("exploding-gradient", 12, Severity.INFO)
    assert join([info], [finding("missing-zero-grad", 8)]) == ([], [])
    assert join([], [finding("missing-zero-grad", 8)]) == ([], [])


def test_both_have_seen_it() -> None:
    added, notes = join([finding("log-of-zero", 5)], [finding("log-of-zero", 5), finding("log-of-zero", 9)])
    assert added == []
    assert notes == ["log-of-zero at train.py:5 was seen both while it ran and in the source"]


def test_the_loop_of_a_missing_call_is_the_cause(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EXPLODES)
    command = [sys.executable, "-m", "osler", "run", "--json", "report.json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()
    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    (root,) = [f for f in findings if f["root"]]
    assert (root["rule"], root["where"]["line"]) == ("missing-zero-grad", 8)
    assert root["where"]["file"].endswith("train.py")
    assert {f["rule"] for f in findings} >= {"exploding-gradient"}


def test_files_that_are_no_python_or_gone_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    named = [finding("log-of-zero"), Finding("x", Severity.INFO, Confidence.DEFINITE, "m", Where(file="gone.py"))]
    assert files("torchrun", named, tmp_path) == [str(tmp_path / "train.py")]
    (tmp_path / "train.py").write_text("def broken(:\n")
    assert seen_in_source([str(tmp_path / "train.py")]) == []


def test_the_settings_count(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "net = torch.nn.Linear(2, 2)\n"
        "opt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=20)\n"
        "loader = torch.utils.data.DataLoader([torch.ones(2)] * 9)\n"
        "for epoch in range(3):\n"
        "    for x in loader:\n"
        "        opt.zero_grad()\n"
        "        loss = net(x).sum()\n"
        "        loss.backward()\n"
        "        opt.step()\n"
        "        sched.step(loss)\n"
    )

    def rules(settings: Lint) -> set[str]:
        return {f.rule for f in seen_in_source([str(script)], settings=settings)}

    assert "scheduler-per-batch" in rules(Lint())
    assert "scheduler-per-batch" not in rules(Lint(scheduler_patience=20))
