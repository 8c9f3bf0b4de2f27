"""What `osler run` is asked to start: a script, a module, a command, and the interpreter for it."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from osler.core.runfolder import DISABLE
from osler.training.launch import LaunchError

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
