"""`osler lint` as its users meet it."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import pytest

from osler.app.errors import UserError
from osler.app.lint import Wishes, lint

OSLER = str(Path(sys.executable).with_name("osler"))
BAD = "import thing\n\n\nthing.load(a)\n"


def run(capsys: pytest.CaptureFixture[str], *paths: str, **wishes: object) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = lint(Wishes(paths=paths or (".",), **wishes))  # type: ignore[arg-type]
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def bad(here: Path, checks: object) -> Path:
    path = here / "a.py"
    path.write_text(BAD)
    return path


def osler(*words: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    command = [OSLER, "lint", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **kwargs)  # type: ignore[call-overload, no-any-return]


def test_text(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (1, "")
    assert out == (
        "a.py:4:1 warning[test-load] It is loaded without safe.\n"
        "2 |\n"
        "3 |\n"
        "4 | thing.load(a)\n"
        "  | ^^^^^^^^^^\n"
        "  = fix: Give safe=True. (--fix does it)\n"
        "\n"
        "osler: 1 warning in 1 file (1 file read); --fix mends 1\n"
    )


def test_carets_stand_under_what_they_mark(here: Path, checks: object, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import thing\nif 1:\n\tx = '漢ä'; thing.load(a)\n")
    _, out, _ = run(capsys, quiet=True)
    lines = out.splitlines()
    assert lines[3] == "3 |     x = '漢ä'; thing.load(a)"
    assert lines[4] == "  |                ^^^^^^^^^^"  # one column more: 漢 takes two


def test_clean_and_quiet_and_empty(here: Path, checks: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys) == (0, "osler: there is no Python file and no notebook here\n", "")
    Path("a.py").write_text("x = 1\n")
    assert run(capsys) == (0, "osler: no findings (1 file read)\n", "")
    assert run(capsys, quiet=True) == (0, "", "")


def test_concise_github_statistics(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    concise = run(capsys, output_format="concise")[1].splitlines()
    assert concise[0] == "a.py:4:1 warning[test-load] It is loaded without safe." and len(concise) == 2
    assert run(capsys, output_format="github")[1] == (
        "::warning file=a.py,line=4,endLine=4,col=1,endColumn=11,title=osler (test-load)"
        "::It is loaded without safe.%0AGive safe=True.\n"
    )
    assert run(capsys, statistics=True, quiet=True)[1] == "     1  warning  test-load  A thing is loaded.\n"
    with pytest.raises(UserError, match="text, concise, github"):
        run(capsys, output_format="xml")


def test_written_reports(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.py").write_text("def f(:\n")
    code, out, err = run(capsys, json="-", sarif="s.json", junit="j.xml", html="p.html")
    report = json.loads(out)
    assert code == 1 and report["subject"]["kind"] == "lint" and report["subject"]["files"] == 2
    (finding,) = report["findings"]
    assert finding["where"] == {"file": "a.py", "line": 4, "character": 1, "end_line": 4, "end_character": 11}
    assert report["not_checked"] == [{"what": "b.py:1", "why": "does not parse: invalid syntax"}]
    assert "b.py:1: does not parse" in err and "1 file not checked" in err
    sarif = json.loads(Path("s.json").read_text())
    assert sarif["runs"][0]["results"][0]["ruleId"] == "test-load"
    assert ElementTree.parse("j.xml").getroot().get("failures") == "1"
    assert "test-load" in Path("p.html").read_text()
    with pytest.raises(UserError, match="there is no folder"):
        run(capsys, json="nowhere/x.json")


def test_written_reports_of_a_notebook(here: Path, checks: object, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# thing.load\n", "text"]},
        {"cell_type": "code", "source": ["import thing\n", "\n", "thing.load(a)"]},
        {"cell_type": "code", "source": "x = 1\nthing.load(b)"},
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    Path("n.ipynb").write_text(text)
    code, out, _ = run(capsys, sarif="s.json", junit="j.xml", html="p.html", output_format="concise")
    places = ["n.ipynb:cell 2:3", "n.ipynb:cell 3:2"]
    assert code == 1 and [line.partition(" warning")[0] for line in out.splitlines()[:2]] == [p + ":1" for p in places]

    results = json.loads(Path("s.json").read_text())["runs"][0]["results"]
    for result, cell, line, source in zip(results, (2, 3), (3, 2), ("thing.load(a)", "thing.load(b)"), strict=True):
        (location,) = result["locations"]
        assert location["logicalLocations"] == [
            {"name": f"cell {cell}", "fullyQualifiedName": f"n.ipynb:cell {cell}", "kind": "cell"}
        ]
        assert result["message"]["text"] == f"cell {cell}, line {line}: It is loaded without safe.\nGive safe=True."
        region = location["physicalLocation"]["region"]
        assert source in text.split("\n")[region["startLine"] - 1]  # the line of the JSON, which is what is in the file
    assert len({r["partialFingerprints"]["oslerFinding/v1"] for r in results}) == 2

    tests = [t for t in ElementTree.parse("j.xml").iter("testcase") if t.find("failure") is not None]
    assert [(t.get("name"), t.get("file"), t.get("line")) for t in tests] == [
        (f"test-load ({place})", "n.ipynb", None) for place in places
    ]
    page = Path("p.html").read_text()
    for place in places:
        assert f"<code>{place}</code>" in page
    assert '<span class="t">thing.load(a)</span>' in page and "&#34;thing.load" not in page


def test_exit_codes(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, fail_on="error")[0] == 0
    assert run(capsys, fail_on="info")[0] == 1
    Path("b.py").write_bytes(b"\x00")
    assert run(capsys)[0] == 1
    assert run(capsys, "b.py")[0] == 2
    Path("c.py").write_text("x = 1\n")
    assert run(capsys, "b.py", "c.py")[0] == 0
    with pytest.raises(UserError, match="no file or folder nope"):
        run(capsys, "nope")


def test_select_ignore_and_per_file_ignores(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, select=["test-both"])[0] == 0
    assert run(capsys, ignore=["test-load"])[0] == 0
    with pytest.raises(UserError, match="closest: test-load"):
        run(capsys, select=["test-laod"])
    Path("osler.toml").write_text('[per_file_ignores]\n"a.py" = ["test-load"]\n')
    code, out, _ = run(capsys)
    assert code == 0 and "1 left out by comments or the configuration" in out
    Path("osler.toml").write_text('fail_on = "error"\n[lint]\nextend_exclude = ["a.*"]\n')
    assert "there is no Python file" in run(capsys)[1]
    assert run(capsys, "a.py")[0] == 0
    assert "there is no Python file" in run(capsys, "a.py", force_exclude=True)[1]


def test_settings_are_validated_once(
    bad: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("osler.toml").write_text('fail_on = "error"\n')
    run(capsys)
    with monkeypatch.context() as patch:
        patch.setattr("osler.app.lint.setup.load", None)
        assert run(capsys)[0] == 0
    Path("osler.toml").write_text('fail_on = "never"\n')
    with pytest.raises(UserError, match="fail_on"):
        run(capsys)


def test_possible_findings_are_held_back(here: Path, checks: object, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import thing\nthing.load(a, maybe=1)\n")
    code, out, _ = run(capsys)
    assert code == 0 and "1 possible finding held back (--all shows them)" in out
    code, out, _ = run(capsys, all=True)
    assert code == 1 and "warning[test-load] (possible) It is loaded" in out


def test_comments(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(
        "import thing\nthing.load(a)  # osler: ignore[test-load]\nx = 1  # osler: ignore[test-load]\ny = 1  # osler: ignore[test-both]\n"
    )
    code, out, _ = run(capsys)
    assert code == 0
    assert "note: a.py:3: the ignore comment leaves out nothing: test-load is not found here" in out
    assert "a.py:4" not in out
    assert "a.py:4" in run(capsys, warn_unused_ignores=True)[1]


def test_fix_and_diff(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(BAD + "thing.load(b, unsafe=1)\n")
    before = bad.read_bytes()
    code, out, err = run(capsys, diff=True)
    assert code == 1 and bad.read_bytes() == before
    assert "+thing.load(a, safe=True)" in out and "unsafe=1, safe" not in out
    assert "1 fix would be made; nothing was written" in err
    assert "+thing.load(b, unsafe=1, safe=True)" in run(capsys, diff=True, unsafe_fixes=True)[1]
    code, out, err = run(capsys, fix=True)
    assert code == 1 and "1 fix made in 1 file (test-load 1)" in err
    assert "--unsafe-fixes mends 1" in out
    assert bad.read_text() == "import thing\n\n\nthing.load(a, safe=True)\nthing.load(b, unsafe=1)\n"
    after = bad.read_bytes()
    run(capsys, fix=True)
    assert bad.read_bytes() == after
    assert run(capsys, unsafe_fixes=True)[0] == 0
    assert bad.read_text().count("safe=True") == 2


def test_what_is_ignored_is_not_fixed(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text("import thing\nthing.load(a)  # osler: ignore[test-load]\nthing.load(b)\n")
    run(capsys, fix=True)
    assert bad.read_text().splitlines()[1:] == ["thing.load(a)  # osler: ignore[test-load]", "thing.load(b, safe=True)"]


def test_baseline(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = Path("known.json")
    with pytest.raises(UserError, match="--write-baseline"):
        run(capsys, baseline=known)
    with pytest.raises(UserError, match="needs the file"):
        run(capsys, write_baseline=True)
    assert run(capsys, baseline=known, write_baseline=True) == (0, "osler: 1 finding written to known.json\n", "")
    code, out, _ = run(capsys, baseline=known)
    assert code == 0 and "1 known to the baseline" in out
    bad.write_text("import thing\nx = 1\nthing.load(a)\nthing.load(c)\n")
    code, out, _ = run(capsys, baseline=known)
    assert code == 1 and "a.py:4:1" in out and "a.py:3:1" not in out
    Path("osler.toml").write_text('[lint]\nbaseline = "known.json"\n')
    assert "1 known to the baseline" in run(capsys)[1]
    bad.write_text("x = 1\n")
    assert "1 of its entries are no more" in run(capsys)[1]


def test_stdin(here: Path, checks: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    give(BAD)
    code, out, _ = run(capsys, "-", stdin_filename="src/x.py")
    assert code == 1 and "src/x.py:4:1 warning" in out and "4 | thing.load(a)" in out
    give(BAD)
    assert "<stdin>:4:1" in run(capsys, "-")[1]
    give("def f(:")
    assert run(capsys, "-")[0] == 2
    give(BAD)
    code, out, err = run(capsys, "-", fix=True)
    assert code == 0 and out == BAD.replace("(a)", "(a, safe=True)") and "no findings" in err
    with pytest.raises(UserError, match="cannot be mixed"):
        run(capsys, "-", "a.py")


def test_colour_only_where_it_is_wanted(
    bad: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b" not in run(capsys)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;33mwarning[test-load]\x1b[0m" in run(capsys)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(capsys)[1]


def test_hostile_names_and_messages(here: Path, checks: object, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a\x1b[31m\n::b.py").write_text(BAD)
    for form in ("text", "concise", "github"):
        out = run(capsys, output_format=form, quiet=True)[1]
        assert "\x1b" not in out
        assert out.splitlines()[0].startswith(("a", "::warning"))


# --- the real process -------------------------------------------------------------------------------------------------


def test_many_files_by_several_processes(here: Path) -> None:
    for n in range(70):
        Path(f"f{n:02}.py").write_text("def f(:\n" if n % 10 == 0 else "x = 1\n")
    Path("json.py").write_text("raise SystemExit('the working directory is not to be imported from')\n")
    done = osler("--jobs", "2")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert lines == [f"osler: f{n:02}.py:1: does not parse: invalid syntax" for n in range(0, 70, 10)]
    assert done.stdout == "osler: no findings (64 files read); 7 files not checked\n"
    again = osler("--jobs", "2")
    assert (again.stdout, again.stderr) == (done.stdout, done.stderr)


def test_the_warm_way_imports_nothing_heavy(here: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    Path("pyproject.toml").write_text("[tool.osler]\nfail_on = 'error'\n")
    osler()
    code = (
        "import sys\n"
        "from osler.app.lint import Wishes, lint\n"
        "lint(Wishes())\n"
        "print([m for m in ('numpy', 'rich', 'pydantic', 'torch', 'multiprocessing', 'osler.lint.registry', "
        "'osler.syntax.project') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


def test_the_command_line_itself_is_light(here: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    code = (
        "import sys\n"
        "from osler.cli import main\n"
        "sys.argv = ['osler', 'lint', '--fail-on', 'error', '--ignore', 'unsafe-load', 'a.py']\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    print(end.code, [m for m in ('pydantic', 'rich.progress') if m in sys.modules])"
    )
    osler("--fail-on", "error", "--ignore", "unsafe-load", "a.py")  # what is configured is validated once
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 []", done.stdout + done.stderr
    wrong = osler("--jobs", "many", "a.py")
    assert wrong.returncode == 2 and wrong.stderr.startswith("osler: Invalid value for '--jobs'")


def test_an_interrupt_is_one_line(here: Path) -> None:
    for n in range(60):
        Path(f"f{n}.py").write_text("x = 1\n" * 20_000)
    process = subprocess.Popen(
        [OSLER, "lint", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2 and err == "osler: interrupted\n"


def test_watch_tells_only_what_changes(here: Path) -> None:
    Path("a.py").write_text("x = 1  # osler: ignore[no-such-rule]\n")
    process = subprocess.Popen(
        [OSLER, "lint", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    assert "no findings (1 file); watching" in process.stdout.readline()
    Path("a.py").write_text("def f(:\n")
    assert "a.py:1: does not parse" in process.stdout.readline()
    faulty = (
        "import torch\nnet = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "for x in range(9):\n    net(torch.ones(2)).sum().backward()\n    opt.step()\n"
    )
    Path("a.py").write_text(faulty)
    told = ""
    while "watching" not in told:
        told = process.stdout.readline()
    Path("a.py").write_text("# moved\n" + faulty)  # nothing new
    time.sleep(1.5)
    Path("a.py").write_text("x = 1\n")
    assert process.stdout.readline().startswith("gone: a.py:")
    assert "no findings (1 file); watching" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert out == "osler: interrupted\n"


def test_help_names_everything(here: Path) -> None:
    done = osler("--help")
    for word in (
        "--fix",
        "--unsafe-fixes",
        "--diff",
        "--baseline",
        "--output-format",
        "--watch",
        "--sarif",
        "--server",
    ):
        assert word in done.stdout


SCHEDULED = """import torch

net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
sched = torch.optim.lr_scheduler.{made}
loader = torch.utils.data.DataLoader([torch.ones(2)] * 9)
for epoch in range(3):
    for x in loader:
        opt.zero_grad()
        loss = net(x).sum()
        loss.backward()
        opt.step()
        sched.step({given})
"""


@pytest.mark.parametrize(
    ("made", "given", "setting"),
    [
        ("ReduceLROnPlateau(opt, patience=20)", "loss", "scheduler_patience=20"),
        ("StepLR(opt, 100, 0.4)", "", "scheduler_left=1e-4"),
        ("StepLR(opt, 100, 0.4)", "", "scheduler_calls=300"),
    ],
)
def test_a_rule_s_thresholds_are_settings(
    here: Path, capsys: pytest.CaptureFixture[str], made: str, given: str, setting: str
) -> None:
    Path("a.py").write_text(SCHEDULED.format(made=made, given=given))
    wishes = {"output_format": "concise", "select": ["scheduler-per-batch"], "quiet": True}
    for _ in range(2):  # the second time from what is kept
        assert "scheduler-per-batch" in run(capsys, **wishes)[1]
        assert run(capsys, overrides=[f"lint.{setting}"], **wishes)[1] == ""


def test_several_processes_know_the_thresholds(here: Path) -> None:
    for n in range(40):
        text = SCHEDULED.format(made="ReduceLROnPlateau(opt, patience=20)", given="loss")
        Path(f"f{n:02}.py").write_text(text)
    words = ("--jobs", "2", "--select", "scheduler-per-batch")
    assert "40 warnings" in osler(*words).stdout
    assert "no findings" in osler(*words, "--set", "lint.scheduler_patience=20").stdout
