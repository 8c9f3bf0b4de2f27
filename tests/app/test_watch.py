"""`osler.watch()`: the same watching in a notebook or a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import contextlib, io, json, sys, pathlib
import torch
from torch import nn
import osler
from osler.app.errors import UserError
from osler.app.watch import FaultsFound
from osler.core.settings import Settings

def train(steps=3, bad=2):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        opt.zero_grad()
        p = model(torch.randn(6, 4)).softmax(-1) * float(step != bad)
        loss = p.log().mean()  # here: fault
        loss.backward()
        opt.step()

def train_ignored():
    model = nn.Linear(4, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    opt.zero_grad()
    loss = (model(torch.ones(2, 4)) * 0).log().mean()  # osler: ignore[log-of-zero] on purpose
    loss.backward()
    opt.step()

out = {}

with osler.watch(budget="none") as w:
    before = len(w.findings)
    train()
    during = [f.rule for f in w.findings], w.report.subject["kind"]
r = w.report
out["plain"] = {
    "before": before, "during": during, "rules": [f.rule for f in w.findings], "line": w.findings[0].where.line,
    "file": w.findings[0].where.file, "steps": r.subject["steps"], "kind": r.subject["kind"], "command": r.subject["command"],
    "seconds": r.subject["seconds"] > 0, "version": r.version == osler.__version__, "torch": r.environment["torch"],
    "curves": sorted(s.name for s in r.series), "budget": r.overhead["budget"], "same": w.report is r, "layers": r.layers,
    "dump": "dump" in w.findings[0].evidence, "dumps": [n.what for n in r.not_checked if "dump" in n.what],
}
text = io.StringIO()
with contextlib.redirect_stdout(text):
    w.show()
out["show"] = text.getvalue()
out["html"] = w.save("page.html").read_text()
out["json"] = json.loads(w.save("report.json").read_text())
out["repr"] = w._repr_html_()

with osler.watch() as w:
    train(bad=None)
out["healthy"] = {"rules": [f.rule for f in w.findings], "budget": w.report.overhead["budget"]}

try:
    with osler.watch(fail_on="warning", budget="none") as w:
        train()
    out["fail_on"] = None
except FaultsFound as error:
    out["fail_on"] = [str(error).splitlines()[0], isinstance(error, AssertionError), len(w.findings)]
with osler.watch(fail_on="warning", budget="none") as w:
    train(bad=None)
try:
    with osler.watch(fail_on="info", budget="none") as w:
        train()
        raise KeyError("mine")
except KeyError as error:
    out["own exception"] = [str(error), [f.rule for f in w.findings]]

with osler.watch(budget="none") as outer:
    with osler.watch(budget="none", fail_on="info") as inner:
        train()
    passive = [[f.rule for f in inner.findings], inner.report.notes]
out["nested"] = {"inner": passive, "outer": [f.rule for f in outer.findings]}

with osler.watch(budget="none", folder="kept") as w:
    train()
dump = pathlib.Path(w.findings[0].evidence["dump"])
out["folder"] = [str(dump), dump.is_dir(), oct(pathlib.Path("kept/dumps").stat().st_mode & 0o777)]

with osler.watch(budget="none", settings=Settings(ignore=["log-of-zero"])) as w:
    train()
out["settings"] = [f.rule for f in w.findings]
with osler.watch(budget="none", trace_layers=True) as w:
    train(bad=None)
out["layers"] = [(row["module"], row["kind"], row["outputs"][0]["shape"]) for row in w.report.layers]
with osler.watch(budget="none") as w:
    train_ignored()
out["ignored"] = [f.rule for f in w.findings]

for name, options in {
    "budget": {"budget": "lots"}, "negative": {"budget": -1}, "fail_on": {"fail_on": "fatal"},
}.items():
    try:
        osler.watch(**options)
        out["bad " + name] = None
    except UserError as error:
        out["bad " + name] = str(error)
with osler.watch(budget=0.5) as w:
    train(bad=None)
out["half"] = w.report.overhead["budget"]
pathlib.Path("osler.toml").write_text('[numbers]\\nscaler_skips = 5\\nignore = 3\\n')
try:
    osler.watch()
    out["bad file"] = None
except UserError as error:
    out["bad file"] = str(error)
out["active"] = __import__("osler.training.session", fromlist=["active"]).active()
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("watch")
    script = folder / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = _run([str(script)], folder)
    assert done.returncode == 0, done.stderr
    out: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    out["script"] = str(script)
    out["stderr"] = done.stderr
    return out


def _run(arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSLER_")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_report_of_a_block(outcome: dict[str, Any]) -> None:
    seen = outcome["plain"]
    assert seen["before"] == 0
    assert seen["during"] == [["log-of-zero"], "watch"]
    assert seen["rules"] == ["log-of-zero"]
    marks = [i for i, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith("# here: fault")]
    assert [seen["line"]] == marks
    assert seen["file"] == outcome["script"]
    assert (seen["steps"], seen["kind"], seen["command"]) == (3, "watch", [outcome["script"]])
    assert seen["seconds"] is seen["version"] is seen["same"] is True
    assert seen["torch"]
    assert {"loss", "gradient_norm", "learning_rate", "gradient_norm_by_parameter"} <= set(seen["curves"])
    assert seen["budget"] == "none"
    assert seen["layers"] == []


def test_no_dump_without_a_folder(outcome: dict[str, Any]) -> None:
    assert outcome["plain"]["dump"] is False
    assert outcome["plain"]["dumps"] == []


def test_a_folder_takes_the_dumps(outcome: dict[str, Any]) -> None:
    path, there, mode = outcome["folder"]
    assert path.startswith("kept/dumps/step-2-")
    assert there is True
    assert mode == "0o700"


def test_showing_and_saving(outcome: dict[str, Any]) -> None:
    assert "log-of-zero" in outcome["show"]
    assert "script.py:" in outcome["show"]
    assert outcome["html"].lstrip().lower().startswith("<!doctype html>")
    assert "log-of-zero" in outcome["html"]
    (finding,) = outcome["json"]["findings"]
    assert (finding["rule"], finding["root"], finding["confirmed"]) == ("log-of-zero", True, True)
    assert outcome["json"]["subject"]["kind"] == "watch"
    assert outcome["repr"].startswith("<iframe srcdoc=")
    assert "<!doctype" not in outcome["repr"].lower().replace("&lt;!doctype", "")


def test_a_healthy_block(outcome: dict[str, Any]) -> None:
    assert outcome["healthy"] == {"rules": [], "budget": "0.03"}
    assert outcome["half"] == "0.5"


def test_failing_on_findings(outcome: dict[str, Any]) -> None:
    first, is_assertion, count = outcome["fail_on"]
    assert first.startswith("log-of-zero: At step 2 ")
    assert is_assertion is True
    assert count == 1


def test_the_blocks_own_exception_comes_first(outcome: dict[str, Any]) -> None:
    assert outcome["own exception"] == ["'mine'", ["log-of-zero"]]


def test_a_block_inside_a_watched_process_is_passive(outcome: dict[str, Any]) -> None:
    rules, notes = outcome["nested"]["inner"]
    assert rules == []
    assert len(notes) == 1
    assert outcome["nested"]["outer"] == ["log-of-zero"]


def test_settings_and_comments_are_heeded(outcome: dict[str, Any]) -> None:
    assert outcome["settings"] == []
    assert outcome["ignored"] == []


def test_layers_are_listed_on_request(outcome: dict[str, Any]) -> None:
    assert outcome["layers"] == [["0", "Linear", [6, 8]], ["1", "ReLU", [6, 8]], ["2", "Linear", [6, 4]]]


@pytest.mark.parametrize(
    ("what", "words"), [("budget", "lots"), ("negative", "-1"), ("fail_on", "fatal"), ("file", "ignore")]
)
def test_bad_usage_is_one_line(outcome: dict[str, Any], what: str, words: str) -> None:
    message = outcome[f"bad {what}"]
    assert message is not None
    assert words in message
    assert "\n" not in message


def test_nothing_is_left_behind(outcome: dict[str, Any]) -> None:
    assert outcome["active"] is False
    assert "osler failed" not in outcome["stderr"]
    assert "Traceback" not in outcome["stderr"]


def test_without_torch(tmp_path: Path) -> None:
    code = """
    import sys
    sys.modules["torch"] = None
    import osler
    try:
        with osler.watch():
            pass
    except ModuleNotFoundError as error:
        print("no torch:", error)
    """
    done = _run(["-c", textwrap.dedent(code)], tmp_path)
    assert done.stdout.startswith("no torch: "), done.stderr
