"""The command line: what it prints, its exit codes, and that nothing bad ever shows a traceback."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import osler
from osler import cli

CLEAN = {k: v for k, v in os.environ.items() if not re.match(r"OSLER_|NO_COLOR|FORCE_COLOR|_OSLER|COLUMNS", k)}
VERBS = ["run", "explain", "report", "runs", "cases", "env", "schema", "doctor", "replay", "config"]


def command(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m osler …` in a real process."""
    return subprocess.run(
        [sys.executable, "-m", "osler", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=CLEAN | env,
        timeout=60,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The single line that a failure may print."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("osler: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """`main()` in this process: exit code, stdout, stderr."""
    monkeypatch.setattr(sys, "argv", ["osler", *args])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out.out, out.err


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(cli.app, ["--version"]).output == f"osler {osler.__version__}\n"
    result = runner.invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) <= 40
    for verb in VERBS:
        assert re.search(rf"^  {verb} +\S", result.output, re.MULTILINE), verb
    assert runner.invoke(cli.app, ["-h"]).output == result.output


@pytest.mark.parametrize(
    "verb",
    [[v] for v in VERBS if v not in ("runs", "cases", "config")]
    + [["runs", "list"], ["runs", "show"], ["runs", "prune"], ["config", "show"]],
)
def test_every_verb_has_help_with_an_example(verb: list[str]) -> None:
    result = CliRunner().invoke(cli.app, [*verb, "--help"])
    assert result.exit_code == 0
    assert f"Examples:\n    osler {' '.join(verb)}" in result.output


def test_help_comes_quickly_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['osler', '--help']\n"
        "from osler.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print([m for m in ('torch', 'numpy', 'rich', 'pyarrow', 'jinja2') if m in sys.modules])"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=CLEAN, check=True)
    assert time.perf_counter() - start < 2.0
    assert done.stdout.splitlines()[-1] == "[]"


def test_explain() -> None:
    done = command("explain", "dead-relu")
    assert done.returncode == 0
    assert done.stdout.startswith("dead-relu")
    assert "\x1b" not in done.stdout
    rule = json.loads(command("explain", "dead-relu", "--json").stdout)
    assert rule["severity"] == "warning"
    assert "gradients.dead_share" in [t["name"] for t in rule["thresholds"]]
    table = command("explain")
    assert "gradients" in table.stdout.splitlines()
    everything = json.loads(command("explain", "--json").stdout)
    assert "dead-relu" in [r["name"] for r in everything]
    assert all(re.search(rf"^  {r['name']} ", table.stdout, re.MULTILINE) for r in everything)


def test_colour_is_for_terminals() -> None:
    plain = command("explain", "dead-relu").stdout
    main, side = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "osler", "explain", "dead-relu"], stdout=side, env=CLEAN | {"TERM": "xterm-256color"}
    )
    os.close(side)
    chunks = []
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # Linux says EIO when the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(main)
    assert child.wait(60) == 0
    text = b"".join(chunks).decode()
    assert "\x1b[" in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text).split() == plain.split()
    assert "\x1b" not in command("explain", "dead-relu", NO_COLOR="1").stdout


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["explain", "dead-rellu"], "no rule is called 'dead-rellu'; closest: dead-relu"),
        (["explin"], "explin"),
        (["explain", "--jsn"], "--jsn"),
        (["run", "--budget", "lots", "x.py"], "--budget 'lots' is no share"),
        (["run", "--fail-on", "fatal", "x.py"], "'fatal' must be info, warning or error"),
        (["run", "--set", "gradients.window", "x.py"], "must be KEY=VALUE"),
        (["run", "--select", "dead-rellu", "x.py"], "closest: dead-relu"),
        (["run", "--config", "missing.toml", "x.py"], "missing.toml cannot be read"),
        (["run", "--json"], "--json"),
        (["config", "show", "--set", "gradients.windw=3"], "closest: gradients.window"),
        (["env", "--diff", "a.json"], "--diff"),
        (["env", "--diff", "a.json", "b.json"], "a.json is no file"),
        (["runs", "prune", "--keep", "-1"], "--keep"),
    ],
)
def test_bad_usage_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    part: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = in_process(monkeypatch, capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("osler: ")
    assert err.count("\n") == 1
    assert part in err


def test_a_group_without_a_verb_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = in_process(monkeypatch, capsys, "runs")
    assert code == 2
    assert "prune" in out + err
    assert "osler: " not in err


def test_cases_are_those_of_the_library() -> None:
    done = command("cases", "--help")
    assert done.returncode == 0
    assert re.search(r"^  verify +\S", done.stdout, re.MULTILINE)


def test_an_unexpected_exception_is_one_line_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(name: str | None, as_json: bool) -> None:
        raise RuntimeError("the cat\nsat on it")

    monkeypatch.setattr("osler.app.explain.show", broken)
    monkeypatch.delenv("OSLER_DEBUG", raising=False)
    code, _, err = in_process(monkeypatch, capsys, "explain")
    assert code == 2
    assert err == "osler: RuntimeError: the cat sat on it; run with OSLER_DEBUG=1 for the traceback\n"
    monkeypatch.setenv("OSLER_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["osler", "explain"])
    with pytest.raises(RuntimeError):
        cli.main()


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(name: str | None, as_json: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("osler.app.explain.show", interrupted)
    assert in_process(monkeypatch, capsys, "explain") == (2, "", "osler: interrupted\n")


def test_a_reader_that_goes_away_causes_no_noise() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "osler", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 2


def test_schema_is_json() -> None:
    result = CliRunner().invoke(cli.app, ["schema"])
    assert "findings" in json.loads(result.output)["properties"]


def test_config_show(tmp_path: Path) -> None:
    (tmp_path / "osler.toml").write_text("[gradients]\nwindow = 32\n")
    done = command("config", "show", "--set", "dump.enabled=false", cwd=tmp_path)
    assert re.search(r"^gradients\.window +32 +osler\.toml:2$", done.stdout, re.MULTILINE)
    assert re.search(r"^dump\.enabled +false +--set$", done.stdout, re.MULTILINE)
    assert re.search(r"^budget\.fraction +0\.03 +default$", done.stdout, re.MULTILINE)
    data = json.loads(command("config", "show", "--json", cwd=tmp_path).stdout)
    assert data["gradients.window"] == {"value": 32, "origin": "osler.toml:2"}


def test_env_and_its_diff(tmp_path: Path) -> None:
    here = json.loads(command("env", "--json", cwd=tmp_path, OMP_NUM_THREADS="1", SECRET="s3cr3t").stdout)
    assert here["torch"]["threads"] == 1
    assert here["variables"]["OMP_NUM_THREADS"] == "1"
    assert "s3cr3t" not in json.dumps(here)
    there = json.loads(json.dumps(here))
    there["torch"]["threads"] = 8
    there["packages"]["rich"] = "1.0"
    (tmp_path / "a.json").write_text(json.dumps(here))
    (tmp_path / "b.json").write_text(json.dumps(there))
    shown = command("env", "--diff", "a.json", "b.json", cwd=tmp_path).stdout.splitlines()
    assert shown[0] == "Known to change numbers"
    assert shown[1] == "  torch.threads  1 → 8"
    assert shown[3] == "Other differences"
    assert shown[4].startswith("  packages.rich  ")
    data = json.loads(command("env", "--diff", "a.json", "b.json", "--json", cwd=tmp_path).stdout)
    assert [d["name"] for d in data["differences"]] == ["torch.threads", "packages.rich"]
    assert "do not differ" in command("env", "--diff", "a.json", "a.json", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("args", "module", "target"),
    [
        (["train.py", "--epochs", "3", "-q"], None, ["train.py", "--epochs", "3", "-q"]),
        (["-q", "train.py", "--", "-x"], None, ["train.py", "--", "-x"]),
        (["-q", "--", "--odd.py"], None, ["--odd.py"]),
        (["-m", "pkg.mod", "--json", "x", "-h"], "pkg.mod", ["--json", "x", "-h"]),
        (["-q", "--budget", "none", "-m", "pkg.mod", "--", "-q"], "pkg.mod", ["--", "-q"]),
        (["-mpkg.mod", "-v"], "pkg.mod", ["-v"]),
        (["--set", "-m", "train.py", "-m", "x"], None, ["train.py", "-m", "x"]),
        (["torchrun", "--nproc-per-node", "2", "train.py"], None, ["torchrun", "--nproc-per-node", "2", "train.py"]),
        (["train.py", "--help"], None, ["train.py", "--help"]),
    ],
)
def test_what_follows_the_target_is_the_scripts(args: list[str], module: str | None, target: list[str]) -> None:
    verb = cli.typer.main.get_command(cli.app).commands["run"]  # type: ignore[attr-defined]
    with verb.make_context("run", list(args), resilient_parsing=False) as context:
        assert context.params["module"] == module
        assert list(context.params["target"] or []) == target


def test_run_needs_a_script(tmp_path: Path) -> None:
    assert "no script to run" in one_line(command("run", "-q", cwd=tmp_path))


@pytest.mark.parametrize(
    ("words", "expected"),
    [("osler explain dead-", "dead-relu"), ("osler runs show 2025", "20250131-120000-1a2b"), ("osler repl", "replay")],
)
def test_shell_completion(tmp_path: Path, words: str, expected: str) -> None:
    (tmp_path / ".osler" / "runs" / "20250131-120000-1a2b").mkdir(parents=True)
    done = command(
        cwd=tmp_path,
        _OSLER_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert expected in done.stdout.split()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of a script that does not train."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "greet.py").write_text("import sys\nprint('hello', *sys.argv[1:])\nsys.exit(7)\n")
    done = command("run", "-q", "greet.py", "-q", "--json", "-", cwd=folder)
    assert (done.returncode, done.stdout) == (7, "hello -q --json -\n")
    return folder


def test_runs_are_listed_and_shown(kept: Path) -> None:
    listed = json.loads(command("runs", "list", "--json", cwd=kept).stdout)
    assert [(r["exit_code"], r["errors"], r["live"]) for r in listed] == [(7, 0, False)]
    assert "greet.py -q --json -" in listed[0]["command"]
    text = command("runs", "list", cwd=kept).stdout.splitlines()
    assert text[0].startswith(f"{listed[0]['id']}  nothing  exit 7, ")
    shown = command("runs", "show", cwd=kept)
    assert re.search(r"^exit_code 7$", shown.stdout, re.MULTILINE)
    details = json.loads(command("runs", "show", listed[0]["id"], "--json", cwd=kept).stdout)
    assert "subject.json" in [f["file"] for f in details["files"]]
    assert details["findings"] == []


def test_report_again_in_every_form(kept: Path) -> None:
    assert "osler report" in command("report", cwd=kept).stdout
    report = command("report", "--json", "-", cwd=kept)
    assert json.loads(report.stdout)["subject"]["exit_code"] == 7
    done = command("report", "--html", "page.html", "--sarif", "s.sarif", "--junit", "j.xml", cwd=kept)
    assert done.stdout == "wrote page.html\nwrote s.sarif\nwrote j.xml\n"
    assert (kept / "page.html").read_text("utf-8").lstrip().lower().startswith("<!doctype html>")
    assert json.loads((kept / "s.sarif").read_text("utf-8"))["version"] == "2.1.0"
    done = command("report", "--share", "out.zip", cwd=kept)
    assert done.stdout == f"wrote {kept / 'out.zip'}\n"
    assert (kept / "out.zip").read_bytes()[:2] == b"PK"


def test_report_opens_the_page(kept: Path) -> None:
    done = command("report", "--open", cwd=kept, BROWSER="echo opened %s")
    page = next((kept / ".osler" / "runs").glob("*/report.html"))
    assert f"opened {page.as_uri()}" in done.stdout
    assert page.stat().st_size > 1000


def test_report_of_nothing(tmp_path: Path, kept: Path) -> None:
    assert "there is no .osler/" in one_line(command("report", cwd=tmp_path))
    assert "nothing to prune" in one_line(command("runs", "prune", cwd=tmp_path))
    assert "there is no folder" in one_line(command("report", "--html", "no/page.html", cwd=kept))
    assert "there is no run 'zzz'" in one_line(command("report", "zzz", cwd=kept))
    assert "does not exist; a bundle lies in" in one_line(command("replay", "zzz", cwd=kept))
    assert command("runs", "list", cwd=tmp_path).stdout.startswith("no runs are kept here")


def test_prune(tmp_path: Path) -> None:
    for second in "012":
        run = tmp_path / ".osler" / "runs" / f"20250131-12000{second}-1a2b"
        run.mkdir(parents=True)
        (run / "subject.json").write_text("{}")
    done = command("runs", "prune", "--keep", "1", "--dry-run", cwd=tmp_path)
    assert done.stdout.splitlines()[-1].startswith("2 runs would be deleted, ")
    assert len(list((tmp_path / ".osler" / "runs").iterdir())) == 3
    gone = json.loads(command("runs", "prune", "--keep", "1", "--json", cwd=tmp_path).stdout)
    assert {(g["id"], g["deleted"]) for g in gone} == {
        ("20250131-120000-1a2b", True),
        ("20250131-120001-1a2b", True),
    }
    assert [p.name for p in (tmp_path / ".osler" / "runs").iterdir()] == ["20250131-120002-1a2b"]
