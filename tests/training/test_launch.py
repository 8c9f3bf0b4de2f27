"""The supervising parent, with real processes: exit codes, signals, descriptors, terminals; and what a target means."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.app.target import resolve
from osler.training.launch import LaunchError, launch

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals are told apart on Linux only")

# What `osler run` does around a child, without the report.
DRIVER = (
    "import os, sys\n"
    "from osler.training.launch import launch, reraise\n"
    "reraise(launch(sys.argv[1:], os.environ, lambda: None, 0.05))\n"
)
# Writes one line for each signal it gets, ends with 5 after `end`.
LISTENER = """\
import os, signal, sys, time
def heard(number, frame):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGCONT"):
    signal.signal(getattr(signal, name), heard)
os.write(1, f"ready {os.getpid()}\\n".encode())
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    time.sleep(0.02)
os._exit(5)
"""


def drive(*command: str, **more: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DRIVER, *command], **more)  # type: ignore[call-overload, no-any-return]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@contextlib.contextmanager
def listening(seconds: float = 10, **more: object) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The driver with a listener under it; gives the driver and the listener's pid."""
    parent = drive(sys.executable, "-c", LISTENER, str(seconds), stdout=subprocess.PIPE, **more)
    try:
        assert parent.stdout is not None
        yield parent, int(parent.stdout.readline().split()[1])
    finally:
        parent.kill()
        parent.wait()
        assert parent.stdout is not None
        parent.stdout.close()


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def wait_for(condition: object, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.01)


ENDS = {
    "pass": 0,
    "raise SystemExit(7)": 7,
    "1/0": 1,
    "import os; os._exit(3)": 3,
    "import os; os.kill(os.getpid(), 9)": -signal.SIGKILL,
    "import os; os.kill(os.getpid(), 15)": -signal.SIGTERM,
    "import os; os.kill(os.getpid(), 2)": -signal.SIGINT,
    "import ctypes; ctypes.string_at(0)": -signal.SIGSEGV,
    "import os; os.abort()": -signal.SIGABRT,
}


@pytest.mark.parametrize("code", ENDS)
def test_ends_as_the_child_ended(code: str, tmp_path: Path) -> None:
    """Exit codes and deaths by signal are those of the child, and so are stdout and stderr."""
    bare = subprocess.run(python(code), capture_output=True, cwd=tmp_path, check=False)
    with drive(*python(code), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as parent:
        out, err = parent.communicate(timeout=20)
    assert (parent.returncode, out, err) == (bare.returncode, bare.stdout, bare.stderr)
    assert parent.returncode == ENDS[code]


STATE = """\
import os, signal
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
print([str(signal.getsignal(n)) for n in sorted(signal.valid_signals())])
listed = os.listdir("/proc/self/fd")  # the one that listing took is closed again
print(sorted(int(fd) for fd in listed if os.path.lexists("/proc/self/fd/" + fd)), os.getpgrp() == os.getpgid(os.getppid()))
print(sorted(k for k in os.environ if k not in ("_", "LC_CTYPE")), os.getcwd(), oct(os.umask(0)))
"""


@pytest.mark.parametrize("odd", [False, True])
def test_child_finds_what_plain_python_finds(odd: bool) -> None:
    """Signal mask, dispositions, open descriptors, environment: also odd ones, as under nohup or a job server."""

    def before() -> None:
        if odd:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGWINCH})
            os.dup2(0, 59)  # a descriptor that the caller hands down

    def seen(*command: str) -> bytes:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=before, close_fds=False
        )
        return child.communicate(timeout=20)[0]

    bare = seen(sys.executable, "-c", STATE)
    assert seen(sys.executable, "-c", DRIVER, sys.executable, "-c", STATE) == bare
    assert bare.count(b"\n") == 4
    assert (b"59]" in bare) == odd


def test_exit_code_is_known_where_sigchld_is_ignored() -> None:
    with drive(
        *python("raise SystemExit(7)"), preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    ) as parent:
        assert parent.wait(20) == 7


def test_stdin_reaches_the_child() -> None:
    with drive(*python("print(input()[::-1])"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        out, _ = parent.communicate(b"abc\n", timeout=20)
    assert (out, parent.returncode) == (b"cba\n", 0)


def test_signals_to_the_parent_alone_are_passed_on_once() -> None:
    names = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT"]
    with listening(1.5) as (parent, _):
        for name in names:
            parent.send_signal(getattr(signal, name))
            time.sleep(0.1)
        assert parent.stdout is not None
        assert parent.stdout.read().decode().split() == names
        assert parent.wait(10) == 5


def test_signals_to_the_group_reach_the_child_once() -> None:
    with listening(1.2, start_new_session=True) as (parent, _):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            os.killpg(parent.pid, number)
            time.sleep(0.1)
        parent.send_signal(signal.SIGUSR2)
        assert parent.stdout is not None
        assert parent.stdout.read().decode().split() == ["SIGINT", "SIGTERM", "SIGUSR1", "SIGINT", "SIGUSR2"]
        assert parent.wait(10) == 5


def test_sigterm_to_the_child_ends_both_alike() -> None:
    with drive(
        *python("import os, time; print(os.getpid(), flush=True); time.sleep(20)"), stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        os.kill(int(parent.stdout.readline()), signal.SIGTERM)
        assert parent.wait(10) == -signal.SIGTERM


def test_killed_parent_takes_the_child_along() -> None:
    with listening() as (parent, pid):
        parent.kill()
        parent.wait()
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"SIGTERM\n"  # not orphaned: it can still tidy up
        os.kill(pid, signal.SIGKILL)


def test_no_process_is_left(tmp_path: Path) -> None:
    parent = drive(*python("import os; print(os.getpgrp())"), stdout=subprocess.PIPE, start_new_session=True)
    out, _ = parent.communicate(timeout=20)
    with pytest.raises(ProcessLookupError):
        os.killpg(int(out), 0)


def test_stop_and_continue() -> None:
    """A child that is stopped by its pid leaves the parent running; CONT to the parent alone wakes the child."""
    with listening(20, start_new_session=True) as (parent, pid):
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: state(pid) == "T")
        time.sleep(0.1)
        assert state(parent.pid) == "S"
        parent.send_signal(signal.SIGCONT)
        wait_for(lambda: state(pid) == "S")
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"SIGCONT\n"


class Terminal:
    """A shell's view of a job on a real terminal: this process plays the keyboard."""

    def __init__(self, *command: str) -> None:
        # A shell leads the session, so that the job's group is not orphaned and stops are obeyed.
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "-i"])
        self.text = ""
        self.type(" ".join(command) + "\n")

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, wanted: str, seconds: float = 10) -> str:
        """Read until `wanted` appears; what came before it, and forget it."""
        end = time.monotonic() + seconds
        while wanted not in self.text:
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} not in {self.text!r}"
            if select.select([self.fd], [], [], left)[0]:
                self.text += os.read(self.fd, 4096).decode(errors="replace").replace("\r", "")
        head, _, self.text = self.text.partition(wanted)
        return head

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.close(self.fd)
            os.waitpid(self.pid, 0)


@pytest.fixture
def scripts(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "listener.py").write_text(LISTENER)
    return f"{sys.executable} {tmp_path}/driver.py {sys.executable}", f"{tmp_path}/listener.py"


def test_keys_of_a_terminal(scripts: tuple[str, str]) -> None:
    """^C and ^\\ reach the child exactly once; ^Z stops the job, `fg` brings it back; the shell sees the exit code."""
    driver, listener = scripts
    terminal = Terminal(driver, listener, "1.5")
    try:
        terminal.until("ready ")
        for key, name in (("\x03", "SIGINT"), ("\x1c", "SIGQUIT"), ("\x03", "SIGINT")):
            terminal.type(key)
            terminal.until(f"{name}\n")
        terminal.type("\x1a")
        terminal.until("Stopped")
        terminal.type("fg\n")
        terminal.until("SIGCONT\n")
        for _ in range(2):
            terminal.type("\x03")
            assert "SIG" not in terminal.until("SIGINT\n")  # nothing came twice
        terminal.type("echo code=$?.\n")
        terminal.until("code=5.")
    finally:
        terminal.close()


def test_interrupt_ends_a_script_as_without_osler(scripts: tuple[str, str]) -> None:
    driver, _ = scripts
    terminal = Terminal(
        driver, "-c", '\'import time; print("on" + "line", flush=True); time.sleep(20)\'', ";", "echo", "code=$?."
    )
    try:
        terminal.until("online")
        terminal.type("\x03")
        text = terminal.until("\nKeyboardInterrupt")
        assert text.count("Traceback") == 1
        terminal.type("echo code=$?.\n")
        terminal.until("code=130.")
    finally:
        terminal.close()


def test_polls_and_survives_what_it_raises() -> None:
    calls: list[float] = []

    def poll() -> None:
        calls.append(time.monotonic())
        raise RuntimeError("a fault of ours")

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    outcome = launch(python("import time; time.sleep(0.5)"), os.environ, poll, 0.05)
    assert outcome.exit_code == 0 and outcome.signal is None and outcome.seconds >= 0.5
    assert 3 <= len(calls) <= 11
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_what_cannot_be_started(tmp_path: Path) -> None:
    for mode, words in (
        (0o644, "cannot be started: Permission denied"),
        (0o755, "cannot be started: Exec format error"),
    ):
        file = tmp_path / f"program{mode}"
        file.write_bytes(b"\x00\x01")
        file.chmod(mode)
        with pytest.raises(LaunchError, match=words):
            launch([str(file)], os.environ, lambda: None)
    with pytest.raises(LaunchError, match="there is no command '/nowhere/x'"):
        launch(["/nowhere/x"], os.environ, lambda: None)


def test_without_sigtimedwait() -> None:
    """The way for systems other than Linux: handlers that pass signals on."""
    driver = DRIVER.replace("reraise(", "import osler.training.launch as m; m._LINUX = False\nreraise(", 1)
    for code, end in (("pass", 0), ("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -9)):
        assert subprocess.run([sys.executable, "-c", driver, *python(code)], check=False, timeout=20).returncode == end
    command = [sys.executable, "-c", driver, sys.executable, "-c", LISTENER, "0.6"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        for number in (signal.SIGTERM, signal.SIGUSR1):
            parent.send_signal(number)
            time.sleep(0.1)
        assert parent.stdout.read().split() == [b"SIGTERM", b"SIGUSR1"]
        assert parent.wait(10) == 5


# --- what a target means ----------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trian.py").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "model.py").touch()
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    return tmp_path


ME = sys.executable


@pytest.mark.parametrize(
    ("target", "argv", "name"),
    [
        (["trian.py", "-m", "x"], [ME, "trian.py", "-m", "x"], "trian.py"),
        (["package", "1"], [ME, "package", "1"], "package"),
        (["-m", "pkg.mod", "-c"], [ME, "-m", "pkg.mod", "-c"], "pkg.mod"),
        (["-Im", "pkg.mod"], [ME, "-I", "-m", "pkg.mod"], "pkg.mod"),
        (["-mpkg.mod"], [ME, "-m", "pkg.mod"], "pkg.mod"),
        (["-uW", "error", "-X", "dev", "trian.py"], [ME, "-uW", "error", "-X", "dev", "trian.py"], "trian.py"),
        (["-c", "print(1)", "a"], [ME, "-c", "print(1)", "a"], "-c"),
        (["tool", "trian.py"], ["{here}/bin/tool", "trian.py"], "tool"),
        (["bin/tool"], ["bin/tool"], "tool"),
        (["notes.txt"], [ME, "notes.txt"], "notes.txt"),
    ],
)
def test_target(here: Path, target: list[str], argv: list[str], name: str) -> None:
    found = resolve(target)
    assert found.argv == [a.replace("{here}", str(here)) for a in argv]
    assert found.name == name
    assert found.python == (found.argv[0] == ME)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["train.py"], "there is no train.py here; did you mean trian.py?"),
        (["TRIAN.PY"], "there is no TRIAN.PY here; did you mean trian.py?"),
        (["zebra.py"], "there is no zebra.py here"),
        (["trein"], "there is no script or command trein here; did you mean trian.py?"),
        (["empty/modle.py"], "there is no modle.py in empty; did you mean empty/model.py?"),
        (["nowhere/x.py"], "there is no folder nowhere, so no nowhere/x.py"),
        (["empty"], "empty is a folder without __main__.py; name the script in it"),
        (["-m"], "-m needs the name of a module"),
        ([], "nothing to run; name a script: `osler run train.py`"),
    ],
)
def test_no_such_target(here: Path, target: list[str], message: str) -> None:
    with pytest.raises(LaunchError) as error:
        resolve(target)
    assert str(error.value) == message


def test_interpreter_by_name_folder_and_mistake(here: Path) -> None:
    assert resolve(["trian.py"], sys.prefix).argv == [str(Path(sys.prefix, "bin", "python")), "trian.py"]
    for wrong, message in (
        ("bin/tool", "is no Python 3 interpreter"),
        ("empty", "is a folder without bin/python"),
        ("notes.txt", "is no executable file"),
    ):
        with pytest.raises(LaunchError, match=message):
            resolve(["trian.py"], wrong)
    with pytest.raises(LaunchError, match="tool is a command of its own"):
        resolve(["tool"], ME)


def test_wrong_environment_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """osler in an environment without torch, another one active: the line names the way out."""
    venv = here / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    import osler.app.target as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(LaunchError) as error:
        resolve(["trian.py", "--lr"], environ={"VIRTUAL_ENV": str(venv), "PATH": "/usr/bin"})
    assert f"`osler run --python {venv}/bin/python trian.py --lr`" in str(error.value)
    assert resolve(["trian.py"], environ={"VIRTUAL_ENV": sys.prefix, "PATH": "/usr/bin"}).argv == [ME, "trian.py"]
