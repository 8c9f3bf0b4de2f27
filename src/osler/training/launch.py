"""Starts the user's script untouched and stays beside it: the thin supervising parent.

The child is in the same process group, with the signal mask and the dispositions that it would have had without osler,
and with stdin, stdout, stderr and every inherited file descriptor as they were. The parent waits, passes on the signals
that only it received, stops when the child is stopped, and ends as the child ended.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from osler.core.runfolder import DISABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_LINUX = sys.platform.startswith("linux")
_PASSED_ON = frozenset(
    getattr(signal, name)
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM")
    if hasattr(signal, name)
)
_SI_KERNEL = 0x80  # siginfo's si_code when the kernel itself sent the signal: a key at the terminal, or its hang-up
_PR_SET_PDEATHSIG = 1
_TOGETHER_S = 0.05  # a signal that reaches two processes of one group within this time was sent to the group


class LaunchError(Exception):
    """The command cannot be started; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the child ended.

    Attributes:
        exit_code: its exit code; None when a signal ended it.
        signal: the signal that ended it; None when it exited.
        seconds: wall time from start to end.
    """

    exit_code: int | None
    signal: int | None
    seconds: float


def launch(argv: Sequence[str], env: Mapping[str, str], on_poll: Callable[[], None], poll_s: float = 0.2) -> Outcome:
    """Run a command as a child and wait for its end.

    Args:
        argv: program and arguments; the program is a path or is looked up on PATH.
        env: the child's whole environment.
        on_poll: called about every `poll_s` seconds in this thread while the child runs; what it raises is dropped.
        poll_s: seconds between two calls.

    Raises:
        LaunchError: the program cannot be executed.
    """
    # Signals can be waited for, and a parent-death signal is bound to, one thread: the main one.
    began = time.monotonic()
    supervise = _supervise if _LINUX else _supervise_plainly
    status = supervise(list(argv), dict(env), on_poll, poll_s)
    seconds = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    return Outcome(None, -code, seconds) if code < 0 else Outcome(code, None, seconds)


def reraise(outcome: Outcome) -> NoReturn:
    """End this process as the child ended: with the same exit code, or of the same signal.

    Only the child dumps core; this process would leave a second dump of no use.
    """
    if outcome.signal is None:
        raise SystemExit(outcome.exit_code)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    number = outcome.signal
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no other disposition to set
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # a signal that does not end us (none that ended the child): the shell's way of saying it


# --- Linux ------------------------------------------------------------------------------------------------------------

if sys.platform.startswith("linux"):
    _TESTIMONY = struct.Struct("=id")  # signal number, CLOCK_MONOTONIC: the same clock in every process
    _HELD = _PASSED_ON | {signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT}

    @dataclass(frozen=True, slots=True)
    class _Before:
        """What the child must find again: the signal mask, and whether SIGCHLD was ignored."""

        mask: set[int]
        ignores_sigchld: bool

    def _supervise(argv: list[str], env: dict[str, str], on_poll: Callable[[], None], poll_s: float) -> int:
        with _held() as before, _Witness() as witness:
            child = _start(argv, env, _prepare(before))
            status = _wait(child.pid, witness, on_poll, poll_s)
            child.returncode = os.waitstatus_to_exitcode(status)
            # What was meant for the child and came too late must not end us in the middle of the report.
            while signal.sigtimedwait(_HELD, 0) is not None:
                pass
            return status

    @contextlib.contextmanager
    def _held() -> Iterator[_Before]:
        """Blocks the signals that are waited for."""
        mask = {int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)}
        before = _Before(mask, signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)
        if before.ignores_sigchld:  # else the kernel reaps the child and its exit code is lost
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            yield before
        finally:
            if before.ignores_sigchld:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)

    def _prepare(before: _Before) -> Callable[[], None]:
        """What runs between fork and exec."""
        prctl = _prctl()
        parent = os.getpid()

        def prepare() -> None:
            # Python's own handlers would swallow a signal that arrives before exec resets them.
            for number in _HELD:
                if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL):
                    signal.signal(number, signal.SIG_DFL)
            if before.ignores_sigchld:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            if prctl is not None:
                prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)
            if prctl is not None and os.getppid() != parent:  # it died before prctl took effect
                os.kill(os.getpid(), signal.SIGTERM)

        return prepare

    def _wait(pid: int, witness: _Witness, on_poll: Callable[[], None], poll_s: float) -> int:
        due = time.monotonic() + poll_s
        while True:
            info = signal.sigtimedwait(_HELD, max(0.0, due - time.monotonic()))
            if info is not None and info.si_signo != signal.SIGCHLD:
                _pass_on(info, pid, witness)
            ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if ended and os.WIFSTOPPED(status):
                # A job that was stopped from the keyboard must look stopped to the shell. SIGSTOP sent to the child
                # alone is left to whoever sent it: nobody would wake us up again.
                if os.WSTOPSIG(status) == signal.SIGTSTP:
                    os.kill(os.getpid(), signal.SIGSTOP)
            elif ended:
                return status
            if time.monotonic() >= due:
                with contextlib.suppress(Exception):
                    on_poll()
                due = time.monotonic() + poll_s

    def _pass_on(info: signal.struct_siginfo, pid: int, witness: _Witness) -> None:
        number = info.si_signo
        if number == signal.SIGCONT:
            time.sleep(0.005)  # the shell wakes up the whole group; give the child the time to get it
            if not _stopped(pid):
                return
        elif info.si_code == _SI_KERNEL or witness.saw(number):
            return  # from the terminal, or sent to the whole group: the child has it already
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def _stopped(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
        except (OSError, IndexError):
            return True

    class _Witness:
        """A process of our group that does nothing but report the signals it gets.

        `kill -INT -GROUP` (from a shell, `timeout`, a batch system) reaches parent and child alike, and nothing in the
        parent's copy tells so. What this process has received too was sent to the group and must not be passed on: a
        second SIGINT would interrupt the script's own tidying up.
        """

        def __init__(self) -> None:
            self._pid = 0
            self._pipe = -1
            self._seen: deque[tuple[int, float]] = deque(maxlen=64)

        def __enter__(self) -> _Witness:
            prctl = _prctl()
            if prctl is None:
                return self
            parent = os.getpid()
            try:
                self._pipe, report = os.pipe()
                os.set_blocking(self._pipe, False)
                self._pid = os.fork()
            except OSError:
                return self
            if self._pid == 0:
                try:
                    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
                    if os.getppid() == parent:
                        os.dup2(report, 0)
                        os.closerange(1, 1 << 16)
                        _testify()
                finally:
                    os._exit(0)
            os.close(report)
            return self

        def __exit__(self, *error: object) -> None:
            if self._pid:
                with contextlib.suppress(OSError):
                    os.kill(self._pid, signal.SIGKILL)
                    os.waitpid(self._pid, 0)
            if self._pipe >= 0:
                os.close(self._pipe)

        def saw(self, number: int) -> bool:
            """Whether the witness got this signal at about this time."""
            now = time.monotonic()
            while True:
                self._read()
                for entry in self._seen:
                    if entry[0] == number and abs(entry[1] - now) <= 2 * _TOGETHER_S:
                        self._seen.remove(entry)
                        return True
                if not self._pid or time.monotonic() - now > _TOGETHER_S:
                    return False
                time.sleep(0.002)

        def _read(self) -> None:
            with contextlib.suppress(OSError):
                self._seen.extend(_TESTIMONY.iter_unpack(os.read(self._pipe, 256 * _TESTIMONY.size)))

    def _testify() -> None:
        """The witness's life: each signal it receives goes, with the time, into the pipe that is its descriptor 0."""
        while True:
            number = signal.sigwaitinfo(_HELD - {signal.SIGCHLD}).si_signo
            os.write(0, _TESTIMONY.pack(number, time.monotonic()))

    def _prctl() -> Callable[..., int] | None:
        """The C library's `prctl`; None where ctypes is missing."""
        try:
            import ctypes

            function: Callable[..., int] = ctypes.CDLL(None).prctl
        except (ImportError, OSError, AttributeError):
            return None
        return function


# --- elsewhere --------------------------------------------------------------------------------------------------------


def _supervise_plainly(argv: list[str], env: dict[str, str], on_poll: Callable[[], None], poll_s: float) -> int:
    """Without sigtimedwait: handlers that pass signals on. SIGINT is left to the terminal, which tells both."""
    child: subprocess.Popen[bytes] | None = None
    waiting: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if child is None:
            waiting.append(number)
        elif number != signal.SIGINT:
            child.send_signal(number)

    before = {number: signal.signal(number, handle) for number in _PASSED_ON}
    try:
        child = _start(argv, env, _restore(before))
        for number in waiting:
            child.send_signal(number)
        while True:
            try:
                code = child.wait(poll_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(Exception):
                    on_poll()
                continue
            return -code if code < 0 else code << 8
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _restore(before: Mapping[int, object]) -> Callable[[], None]:
    def prepare() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if handler == signal.SIG_IGN else signal.SIG_DFL)

    return prepare


def _start(argv: list[str], env: dict[str, str], prepare: Callable[[], None]) -> subprocess.Popen[bytes]:
    try:
        # Python's own descriptors are closed on exec; those the caller handed down are the script's to use.
        return subprocess.Popen(argv, env=env, close_fds=False, preexec_fn=prepare)
    except FileNotFoundError:
        raise LaunchError(f"there is no command {argv[0]!r}") from None
    except OSError as error:
        raise LaunchError(f"{argv[0]} cannot be started: {error.strerror or error}") from None
    except subprocess.SubprocessError as error:
        raise LaunchError(f"{argv[0]} cannot be started: {error}") from None


# --- what to start ----------------------------------------------------------------------------------------------------

HOOK = "osler-wake.pth"
_TRAMPOLINE = str(Path(__file__).with_name("trampoline.py"))
_PROBE = (
    "import sys; del sys.path[:1]\n"
    "import os; from importlib.util import find_spec\n"
    f"hook = any(os.path.isfile(os.path.join(p, {HOOK!r})) for p in sys.path)\n"
    "hook = hook and find_spec('osler') is not None\n"
    "print('osler-probe', sys.version_info >= (3, 10), hook, find_spec('torch') is not None)"
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be started.

    Attributes:
        argv: the whole command line.
        name: what to call it in messages: `train.py`, `pkg.mod`, `torchrun`.
        python: whether osler itself chose the interpreter, so that the script is known to be the process.
        awake: whether osler's hook is known to run in that process; None where that is not known.
    """

    argv: list[str]
    name: str
    python: bool
    awake: bool | None

    @property
    def unwatched(self) -> list[str]:
        """The command line without osler's part in it."""
        return [word for word in self.argv if word != _TRAMPOLINE]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and what it has."""

    path: str
    supported: bool
    hook: bool
    torch: bool


def resolve(target: Sequence[str], python: str | None = None, environ: Mapping[str, str] | None = None) -> Target:
    """Find out what `osler run TARGET…` means: a script, a folder or archive with `__main__.py`, options of Python
    followed by one of these (`-m pkg.mod`, `-I x.py`, `-c code`), or any command on PATH.

    Args:
        target: the command line after osler's own options.
        python: the interpreter that `--python` names: a path, a name on PATH, or the folder of an environment.
        environ: where `PATH`, `VIRTUAL_ENV` and `CONDA_PREFIX` are looked up; by default this process's.

    Raises:
        LaunchError: there is no such thing, or it is sure to run in the wrong environment.
    """
    environ = os.environ if environ is None else environ
    if not target:
        raise LaunchError("nothing to run; name a script: `osler run train.py`")
    options, rest = _split(target)
    if not options and not rest[0].startswith("-"):
        command = _command(rest[0], environ)
        if command is not None:
            if python is not None:
                raise LaunchError(f"--python goes with a script or -m, and {rest[0]} is a command of its own")
            return Target([command, *rest[1:]], Path(rest[0]).name, python=False, awake=None)
    name = _check(rest) if rest else "python"
    interpreter = _interpreter(python, environ)
    if python is None and not interpreter.torch and (other := _other_environment(environ)):
        raise LaunchError(
            f"this osler runs in {sys.prefix}, which has no torch, and the active environment is "
            f"{other.parent.parent}; name its interpreter: "
            f"`osler run --python {shlex.quote(str(other))} {shlex.join(target[:2])}`"
        )
    by_trampoline = not interpreter.hook and interpreter.supported and bool(rest) and rest[0] != "-"
    way = [_TRAMPOLINE] if by_trampoline else []
    reads_site = not any(o.startswith("-") and not o.startswith("--") and "S" in o for o in options)
    awake = (interpreter.hook and reads_site) or by_trampoline
    return Target([interpreter.path, *options, *way, *rest], name, python=True, awake=awake)


def _split(target: Sequence[str]) -> tuple[list[str], list[str]]:
    """Python's own options, and what follows: a path, `-`, or `-m mod` or `-c code` with their arguments."""
    options: list[str] = []
    i = 0
    while i < len(target) and target[i].startswith("-") and target[i] != "-":
        word = target[i]
        i += 1
        if word.startswith("--"):
            options.append(word)
            if word == "--check-hash-based-pycs" and i < len(target):
                options.append(target[i])
                i += 1
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter in "mc":
                if at > 1:
                    options.append(word[:at])
                return options, [f"-{letter}", *([word[at + 1 :]] if word[at + 1 :] else []), *target[i:]]
            if letter in "WX":
                options.append(word)
                if at == len(word) - 1 and i < len(target):
                    options.append(target[i])
                    i += 1
                break
        else:
            options.append(word)
    return options, list(target[i:])


def _command(word: str, environ: Mapping[str, str]) -> str | None:
    """The executable that the word names, unless it is something for Python to run."""
    if word.endswith((".py", ".pyw", ".pyc", ".pyz")):
        return None
    found = shutil.which(word, path=environ.get("PATH"))
    if os.sep not in word:
        # `.venv/bin/osler run torchrun …` without activating the environment means the torchrun beside osler.
        return found or (None if Path(word).exists() else shutil.which(word, path=str(Path(sys.executable).parent)))
    if found is None:
        return None
    # A path to an executable file without a suffix: a program, unless it is a Python archive.
    return None if zipfile.is_zipfile(word) else found


def _check(rest: Sequence[str]) -> str:
    """The target's name for messages.

    Raises:
        LaunchError: it is a path and cannot be run.
    """
    word = rest[0]
    if word in ("-m", "-c"):
        if len(rest) < 2:
            raise LaunchError("-m needs the name of a module" if word == "-m" else "-c needs some code")
        return rest[1] if word == "-m" else "-c"
    if word == "-":
        return "the script on stdin"
    path = Path(word)
    if path.is_dir():
        if not (path / "__main__.py").is_file() and not (path / "__main__.pyc").is_file():
            raise LaunchError(f"{word} is a folder without __main__.py; name the script in it")
    elif not path.exists():
        raise LaunchError(_missing(path))
    return path.name or word


def _missing(path: Path) -> str:
    folder = path.parent
    place = "here" if str(folder) == "." else f"in {folder}"
    kind = path.name if path.suffix or place != "here" else f"script or command {path.name}"
    if not folder.is_dir():
        return f"there is no folder {folder}, so no {path}"
    try:
        entries = [p for p in folder.iterdir() if p.is_dir() or p.suffix == ".py" or path.suffix not in ("", ".py")]
    except OSError:
        entries = []
    by_stem = path.suffix in ("", ".py")  # the suffix that all have in common makes everything look alike
    names = {(p.stem if by_stem else p.name).lower(): p for p in entries}
    wanted = (path.stem if by_stem else path.name).lower()
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    hint = f"; did you mean {names[close[0]]}?" if close else ""
    return f"there is no {kind} {place}{hint}"


def _interpreter(python: str | None, environ: Mapping[str, str]) -> Interpreter:
    if python is None:
        if not sys.executable:
            raise LaunchError("it is not known which Python runs osler; name one with --python")
        hook = any((Path(p) / HOOK).is_file() for p in sys.path)
        return Interpreter(sys.executable, True, hook, find_spec("torch") is not None)
    path = python
    if Path(python).is_dir():
        inside = [p for p in (Path(python, "bin", "python"), Path(python, "Scripts", "python.exe")) if p.is_file()]
        if not inside:
            raise LaunchError(f"--python {python} is a folder without bin/python")
        path = str(inside[0])
    found = shutil.which(path, path=environ.get("PATH"))
    if found is None:
        raise LaunchError(f"--python {python} is no executable file")
    # Asked once, with the caller's environment: PYTHONPATH and the like count for the script as well.
    try:
        answer = subprocess.run(
            [found, "-c", _PROBE],
            env={**environ, DISABLE: "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"--python {python} cannot be started: {error}") from None
    if len(answer) < 4 or answer[-4] != "osler-probe":
        raise LaunchError(f"--python {python} is no Python 3 interpreter")
    supported, hook, torch = (word == "True" for word in answer[-3:])
    return Interpreter(found, supported, hook, torch)


def _other_environment(environ: Mapping[str, str]) -> Path | None:
    """The interpreter of an active environment, or of a `.venv` here, that osler is not part of."""
    for folder in (environ.get("VIRTUAL_ENV"), environ.get("CONDA_PREFIX"), ".venv"):
        if folder:
            python = Path(folder, "bin", "python")
            if python.is_file():
                same = Path(folder).resolve() == Path(sys.prefix).resolve()
                return None if same else python
    return None
