"""Starts the user's script untouched and stays beside it: the thin supervising parent.

The child is in the same process group, with the signal mask and the dispositions that it would have had without osler,
and with stdin, stdout, stderr and every inherited file descriptor as they were. The parent waits, passes on the signals
that only it received, stops when the child is stopped, and ends as the child ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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
