"""Cases whose script writes data that `osler check` looks at."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.cases import execute
from osler.cases.library import CasebookError, load_case, load_healthy
from osler.cases.verdict import Outcome
from osler.cases.verify import verify, verify_healthy
from osler.core.finding import Confidence, Finding, Severity, Where

from .fakes import report_of

Make = Callable[..., Path]

# As `osler check COLUMN FILE --json REPORT`: the first column of FILE above 1 is a finding in COLUMN.
FAKE_CHECK = """
import json, pathlib, shutil, sys

_, column, file, _, report = sys.argv[1:]
if not pathlib.Path(file).exists():
    print(f"osler: {file} does not exist", file=sys.stderr)
    sys.exit(2)
bad = float(pathlib.Path(file).read_text()) > 1
shutil.copy(f"report-{'bad' if bad else 'good'}.json", report)
sys.exit(int(bad))
"""

WRITES = """\
import json
import sys

value = 5.0 if "--faulty" in sys.argv else 0.5  # fault-here
with open("data.txt", "w") as file:
    file.write(str(value))
with open("evidence.json", "w") as file:
    json.dump({"value": value}, file)
"""

TOML = """\
[case]
id = "a-case"
title = "A fault in the data"
detects = ["log-of-zero"]
source = "this test"
cost_s = 1
[check]
args = ["age", "data.txt"]
[in_effect]
expr = "value > 1"
[expect]
finding = {{ rule = "log-of-zero", column = "{column}" }}
"""


@pytest.fixture(autouse=True)
def fake_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "fake_check.py"
    script.write_text(FAKE_CHECK)
    monkeypatch.setattr(execute, "OSLER", (sys.executable, str(script)))


def case(make_case: Make, column: str = "age", repro: str = WRITES) -> Path:
    folder = make_case(repro=repro, toml=TOML.format(column=column))
    where = Where(column="age")
    finding = Finding("log-of-zero", Severity.WARNING, Confidence.DEFINITE, "it moved", where)
    (folder / "report-bad.json").write_text(json.dumps(report_of(finding)))
    (folder / "report-good.json").write_text(json.dumps(report_of()))
    return folder


def test_the_column_is_its_place(make_case: Make) -> None:
    verdict = verify(load_case(case(make_case)), "default")
    assert (verdict.outcome, verdict.rule_right, verdict.line_right, verdict.silent) == (Outcome.PASS, True, True, True)
    assert verdict.found == "column age"


def test_another_column_is_wrong_under_every_budget(make_case: Make) -> None:
    verdict = verify(load_case(case(make_case, column="income")), "default")
    assert verdict.outcome is Outcome.WRONG_LINE
    assert verdict.reason == "reported with column age instead of income"


def test_a_check_that_cannot_read_its_data_has_crashed(make_case: Make) -> None:
    repro = WRITES.replace('open("data.txt"', 'open("other.txt"')
    verdict = verify(load_case(case(make_case, repro=repro)), "default")
    assert verdict.outcome is Outcome.CRASHED
    assert "osler: data.txt does not exist" in verdict.reason


def test_healthy_data_in_a_list_of_its_own(casebook: Path) -> None:
    folder = casebook / "_healthy" / "data"
    folder.mkdir(parents=True)
    (folder / "calm.py").write_text("with open('data.txt', 'w') as file:\n    file.write('0.5')\n")
    (folder / "calm.toml").write_text(
        '[[script]]\nid = "calm"\nfile = "data/calm.py"\ntitle = "Calm"\ncost_s = 1\nsteps = 0\n'
        'check = ["age", "data.txt"]\n'
    )
    (casebook / "_healthy" / "report-good.json").write_text(json.dumps(report_of()))
    (script,) = load_healthy(casebook)
    assert verify_healthy(script, "default").outcome is Outcome.PASS


def test_an_id_twice_is_refused(casebook: Path) -> None:
    folder = casebook / "_healthy" / "data"
    folder.mkdir(parents=True)
    (folder / "calm.py").write_text("")
    entry = '[[script]]\nid = "calm"\nfile = "data/calm.py"\ntitle = "Calm"\ncost_s = 1\nsteps = 0\n'
    (folder / "a.toml").write_text(entry)
    (folder / "b.toml").write_text(entry)
    with pytest.raises(CasebookError, match=r"data/b.toml: another script has the id 'calm' too"):
        load_healthy(casebook)
