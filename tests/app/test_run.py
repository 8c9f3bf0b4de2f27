"""`osler run` with real processes: the script's behaviour untouched, the records complete, one line for what fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from osler.app.run import Outputs
from osler.core.report import Report
from osler.core.runfolder import DISABLE, RUN_DIR

OSLER = [sys.executable, "-m", "osler"]

# A package that passes for torch until somebody tries to patch it.
FAKE_TORCH = """\
__version__ = "2.9.0"
class Tensor: ...
class nn: ...
class autograd: ...
class optim: ...
"""

# Trains; the loss becomes NaN in step 3 on the marked line; then does what its argument says.
TRAINING = """\
import os, signal, sys, time
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    gap = (model(torch.rand(8, 4)) - 1.0) ** 2 + 1.0
    loss = torch.log(gap - 2.0 * gap * (step == 3)).mean()  # fault-here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained", flush=True)
if sys.argv[1:] == ["die"]:
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1:] == ["wait"]:
    time.sleep(30)
"""
FAULT = next(n for n, line in enumerate(TRAINING.splitlines(), 1) if "fault-here" in line)


def environ(**more: str) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith("OSLER") and k not in ("VIRTUAL_ENV", "FORCE_COLOR")
    }
    return {**kept, **more}


def osler(cwd: Path, *args: str | bytes, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*OSLER, *args], cwd=cwd, env=environ(**more), input=stdin, capture_output=True, timeout=120, check=False
    )


def plain(cwd: Path, *args: str | bytes, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environ(), input=stdin, capture_output=True, timeout=120, check=False
    )


def the_run(cwd: Path) -> Path:
    (run,) = (cwd / ".osler" / "runs").iterdir()
    return run


def lines(err: bytes) -> list[str]:
    """osler's own lines."""
    return [line for line in err.decode(errors="replace").splitlines() if line.startswith("osler: ")]


ENDS = {
    "print('out', input())": 0,
    "import sys; print('out'); sys.exit(7)": 7,
    "1 / 0": 1,
    "import os; os._exit(3)": 3,
    "import os; os.kill(os.getpid(), 9)": -signal.SIGKILL,
    "import ctypes; ctypes.string_at(0)": -signal.SIGSEGV,
    "x = (": 1,
    "import sys, pickle\nclass A: pass\nprint(__file__, sys.argv, sys.path[0], __spec__, pickle.dumps(A()))": 0,
}


@pytest.mark.parametrize("code", ENDS, ids=lambda c: c[-20:])
def test_script_is_as_without_osler(tmp_path: Path, code: str) -> None:
    """Exit code, signal, stdout, stdin and the script's part of stderr; plus one line of osler's."""
    (tmp_path / "x.py").write_text(code)
    bare = plain(tmp_path, "x.py", "--json", "a b", stdin=b"line\n")
    watched = osler(tmp_path, "run", "x.py", "--json", "a b", stdin=b"line\n")
    assert watched.returncode == bare.returncode == ENDS[code]
    assert watched.stdout == bare.stdout
    assert watched.stderr.startswith(bare.stderr)
    said = "imported no torch" if bare.returncode == 0 else "ended before it imported torch"
    assert watched.stderr.removeprefix(bare.stderr).decode() == f"osler: x.py {said}: nothing was watched\n"
    subject = json.loads((the_run(tmp_path) / "subject.json").read_text())
    code_kept = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
    assert subject["exit_code"] == code_kept and subject["command"] == ["x.py", "--json", "a b"]


def test_module_command_and_odd_paths(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9 \xff.py")
    (tmp_path / name).write_text("import sys; print(ascii(sys.argv))")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "mod.py").write_text("import sys; print(__spec__.name, sys.argv[1:])")
    for args in ([name, os.fsdecode(b"\xe9")], ["-m", "pkg.mod", "-m", "--python"], [name]):
        bare, watched = plain(tmp_path, *args), osler(tmp_path, "run", *args)
        assert (watched.returncode, watched.stdout) == (bare.returncode, bare.stdout)
        assert b"Traceback" not in watched.stderr and len(lines(watched.stderr)) == 1
    for flag, said in (("-I", "imported no torch"), ("-S", "osler woke up in no process of")):
        watched = osler(tmp_path, "run", sys.executable, flag, "-c", "print(5)")
        assert (watched.returncode, watched.stdout) == (0, b"5\n")
        assert said in lines(watched.stderr)[0] and len(lines(watched.stderr)) == 1


def test_what_cannot_be_run_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "trian.py").touch()
    (tmp_path / "folder").mkdir()
    for args, line in (
        (["train.py"], "there is no train.py here; did you mean trian.py?"),
        (["folder"], "folder is a folder without __main__.py; name the script in it"),
        (["--python", "nothing", "trian.py"], "--python nothing is no executable file"),
        (["--html", "none/x.html", "trian.py"], "--html none/x.html: there is no folder none"),
        (["--json", "folder", "trian.py"], "--json folder is a folder; name a file in it"),
        (["--expect", "g.json", "trian.py"], "there is no such file"),
    ):
        done = osler(tmp_path, "run", *args)
        assert done.returncode == 2 and done.stdout == b""
        assert done.stderr.decode().count("\n") == 1
        assert done.stderr.startswith(b"osler: ") and line in done.stderr.decode()
    assert not (tmp_path / ".osler").exists()


def test_switched_off_it_becomes_the_script(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import os, signal, sys\nprint(os.getpid(), 'osler.app.wake' in sys.modules, 'OSLER_RUN_DIR' in os.environ)\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
    )
    child = subprocess.Popen(
        [*OSLER, "run", "x.py"], cwd=tmp_path, env=environ(**{DISABLE: "1", RUN_DIR: "/x"}), stdout=subprocess.PIPE
    )
    out, _ = child.communicate(timeout=60)
    assert out.decode() == f"{child.pid} False False\n"
    assert child.returncode == -signal.SIGUSR1
    assert not (tmp_path / ".osler").exists()


def test_what_is_kept_and_written_of_an_unwatched_script(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("print('out')")
    secret = "hf_" + "a" * 24
    done = osler(tmp_path, "run", "--json", "-", "--html", "r.html", "--sarif", "r.sarif", "--junit", "r.xml", "x.py",
                 "--api-key", "hunter2", f"--url=https://me:pw@host/{secret}")  # fmt: skip
    assert done.returncode == 0
    head, _, text = done.stdout.decode().partition("\n")
    report = json.loads(text)
    assert head == "out"
    assert report["subject"]["exit_code"] == 0 and report["findings"] == []
    assert {"what": "training", "why": "x.py imported no torch: nothing was watched"} in report["not_checked"]
    assert (tmp_path / "r.html").read_text().startswith("<!")
    assert json.loads((tmp_path / "r.sarif").read_text())["version"] == "2.1.0"
    assert "<testsuites" in (tmp_path / "r.xml").read_text()
    run = the_run(tmp_path)
    plan = json.loads((run / "plan.json").read_text())
    assert plan["options"] == {
        "budget_none": False,
        "trace_layers": False,
        "expect": None,
        "record_graph": None,
        "dump": True,
        "cwd": str(tmp_path),
    }
    assert plan["settings"]["gradients"]["window"] == 64
    kept = b"".join(path.read_bytes() for path in run.iterdir() if path.name != "plan.json")
    assert b"hunter2" not in (run / "subject.json").read_bytes()
    assert (
        b"pw@" not in (run / "subject.json").read_bytes() and secret.encode() not in (run / "subject.json").read_bytes()
    )
    assert kept and not (run / "awake").exists()
    assert {(run / name).stat().st_mode & 0o777 for name in ("plan.json", "subject.json")} == {0o600}


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    """/proc takes no folder: the run is kept elsewhere, and the line says where."""
    (tmp_path / "x.py").write_text("print('out')")
    done = osler(Path("/proc"), "run", str(tmp_path / "x.py"), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, b"out\n")
    said = lines(done.stderr)
    assert len(said) == 2 and str(tmp_path) in said[0] and "imported no torch" in said[1]


def test_torch_that_cannot_be_watched(tmp_path: Path) -> None:
    """A fault of ours, here a torch that cannot be patched: one line, and the script goes on."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "x.py").write_text("import torch\nprint(torch.__version__)\n")
    done = osler(tmp_path, "run", "--json", "r.json", "x.py")
    assert (done.returncode, done.stdout) == (0, b"2.9.0\n")
    assert len(lines(done.stderr)) == 1 and b"Traceback" not in done.stderr
    assert "watching could not start" in lines(done.stderr)[0]
    report = json.loads((tmp_path / "r.json").read_text())
    assert any(n.get("what") == "training" for n in report["not_checked"])


def test_an_interpreter_without_osler(tmp_path: Path) -> None:
    """`--python`: osler is brought along, and nothing else of its environment."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    (tmp_path / "x.py").write_text(
        "import sys, importlib.util as u\nimport torch\n"
        "print(sys.prefix, sys.argv, __file__, u.find_spec('rich'), sys.path[0])\n"
    )
    done = osler(tmp_path, "run", "--python", str(python), "x.py", "1")
    expected = f"{tmp_path}/env ['x.py', '1'] {tmp_path}/x.py None {tmp_path}\n"
    assert (done.returncode, done.stdout.decode()) == (0, expected)
    assert "watching could not start" in done.stderr.decode()  # so it was awake, and saw torch arrive


def test_hook_is_cheap_and_leaves_no_trace_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "print(sorted({'json', 'dataclasses', 'pathlib', 'threading', 'osler.app.wake'} & set(sys.modules)),\n"
        "      [type(f).__module__ for f in sys.meta_path].count('osler.core.guard'))\n"
    )
    for more, seen in (
        ({RUN_DIR: str(tmp_path)}, "['osler.app.wake'] 2"),
        ({}, "[] 0"),
        ({RUN_DIR: "x", DISABLE: "1"}, "[] 0"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env=environ(**more), capture_output=True, text=True, check=False
        )
        assert (done.stdout.strip(), done.stderr) == (seen, "")
    assert [p.name for p in tmp_path.iterdir()] == ["awake"]


def test_a_plan_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(FAKE_TORCH)
    more = {RUN_DIR: str(tmp_path / "gone"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "import torch; print(1)"],
        env=environ(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("osler: the plan of this run could not be read") and done.stderr.count("\n") == 1


def test_output_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    report = Report({"kind": "run", "command": ["x.py"]})
    full = Outputs(json="/dev/full", junit=str(tmp_path / "r.xml"))
    assert full.write(report) == ["--json /dev/full cannot be written: No space left on device"]
    assert (tmp_path / "r.xml").exists()


def found(report: dict[str, object]) -> list[tuple[object, object, object]]:
    findings = report["findings"]
    assert isinstance(findings, list)
    return [(f["where"].get("file"), f["where"].get("line"), f["root"]) for f in findings]


def test_report_comes_after_sigkill(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = osler(tmp_path, "run", "--budget", "none", "--no-dump", "--json", "r.json", "train.py", "die")
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b"trained\n"
    report = json.loads((tmp_path / "r.json").read_text())
    assert (str(tmp_path / "train.py"), FAULT, True) in found(report)
    assert report["subject"]["exit_code"] == 137 and report["subject"]["signal"] == "SIGKILL"
    assert f"train.py:{FAULT}" in done.stderr.decode()


def test_fail_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    done = osler(tmp_path, "run", "--fail-on", "error", "-q", "--no-dump", "train.py")
    assert (done.returncode, done.stdout) == (1, b"trained\n")


def test_live_findings_and_a_killed_parent(tmp_path: Path) -> None:
    """The finding is on stderr while the script runs; killing the parent ends the script and loses nothing."""
    (tmp_path / "train.py").write_text(TRAINING)
    parent = subprocess.Popen(
        [*OSLER, "run", "--budget", "none", "--no-dump", "train.py", "wait"],
        cwd=tmp_path,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert parent.stderr is not None and parent.stdout is not None
    with parent.stderr, parent.stdout:
        try:
            live = parent.stderr.readline().decode()
            assert f"train.py:{FAULT}" in live and "error[" in live
            assert parent.stdout.readline() == b"trained\n"
        finally:
            parent.kill()
            parent.wait()
        began = time.monotonic()
        assert parent.stdout.read() == b""  # the script has gone as well: it held the other end
        assert time.monotonic() - began < 10
    shown = osler(tmp_path, "report", "--json", "-")
    assert (str(tmp_path / "train.py"), FAULT, True) in found(json.loads(shown.stdout))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_to_the_parent_ends_both(tmp_path: Path, number: int) -> None:
    (tmp_path / "x.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(30)")
    parent = subprocess.Popen(
        [*OSLER, "run", "x.py"],
        cwd=tmp_path,
        env=environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may run under nohup
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(number)
    _, err = parent.communicate(timeout=20)
    assert parent.returncode == -number
    assert err.count(b"Traceback") == err.count(b"KeyboardInterrupt") == (number == signal.SIGINT)
    assert lines(err) == ["osler: x.py ended before it imported torch: nothing was watched"]
    assert not Path(f"/proc/{child}").exists()


def test_workers_by_fork_and_spawn(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import multiprocessing as mp\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "def work(n): return float(torch.ones(n).sum()), __name__\n"
        "if __name__ == '__main__':\n"
        "    for how in ('fork', 'spawn'):\n"
        "        with mp.get_context(how).Pool(1) as pool:\n"
        "            print(how, pool.map(work, [2]))\n"
        "    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, num_workers=1)\n"
        "    print([batch[0].tolist() for batch in loader])\n"
    )
    done = osler(tmp_path, "run", "x.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == [
        "fork [(2.0, '__main__')]",
        "spawn [(2.0, '__mp_main__')]",
        "[[0.0, 1.0], [2.0, 3.0]]",
    ]
    assert b"Traceback" not in done.stderr and b"failed" not in done.stderr
