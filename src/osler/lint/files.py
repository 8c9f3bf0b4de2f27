"""Which files are meant by the paths on a command line: folders walked, excludes and `.gitignore` respected."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

SUFFIXES = (".py", ".ipynb")


class NoSuchPath(ValueError):
    """A path that leads nowhere; the message is one sentence."""


@dataclass(slots=True)
class Found:
    """What the paths lead to.

    Attributes:
        files: as they are to be named in messages: what was given, and below it; each file once, in order of path.
        troubles: path and sentence of what could not be looked at.
    """

    files: list[str] = field(default_factory=list)
    troubles: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Excludes:
    """What is left out of folders.

    Attributes:
        globs: held against the name and against the path below the folder that was asked for.
        gitignore: also leave out what git ignores.
        named: hold the globs against files named on the command line as well.
    """

    globs: tuple[str, ...] = ()
    gitignore: bool = True
    named: bool = False


def discover(paths: Iterable[str], excludes: Excludes) -> Found:
    """The files behind the paths.

    Raises:
        NoSuchPath: one of them does not exist.
    """
    found = Found()
    out = _matcher(excludes.globs)
    files: dict[str, None] = {}
    for path in paths:
        try:
            about = os.stat(path)
        except FileNotFoundError:
            broken = " (a link that leads nowhere)" if os.path.islink(path) else ""
            raise NoSuchPath(f"there is no file or folder {path}{broken}") from None
        except (OSError, ValueError) as error:
            raise NoSuchPath(f"{path} cannot be looked at: {getattr(error, 'strerror', None) or error}") from None
        if stat.S_ISDIR(about.st_mode):
            for file in _below(path, out, excludes.gitignore, found):
                files.setdefault(file)
        elif stat.S_ISREG(about.st_mode):
            if not (excludes.named and out(os.path.normpath(path))):
                files.setdefault(os.path.normpath(path))
        else:
            found.troubles.append((path, "is no file: a pipe, a socket or a device is not read"))
    found.files = sorted(_once(files), key=lambda f: f.split(os.sep))
    found.troubles.sort()
    return found


def _once(files: Iterable[str]) -> Iterator[str]:
    """Each file under the first of its names."""
    seen: set[str] = set()
    for file in files:
        real = os.path.realpath(file) if os.path.islink(file) else os.path.abspath(file)
        if real not in seen:
            seen.add(real)
            yield file


def _below(folder: str, out: Callable[[str], bool], gitignore: bool, found: Found) -> Iterator[str]:
    """The files of a folder that are to be read."""
    listed = _listed_by_git(folder) if gitignore else None
    if listed is None:
        yield from _walk(folder, "", out, found)
        return
    left_out: dict[str, bool] = {"": False}

    def hidden(below: str) -> bool:
        known = left_out.get(below)
        if known is None:
            known = left_out[below] = hidden(os.path.dirname(below)) or out(below)
        return known

    for below in listed:
        path = _join(folder, below)
        if below.endswith("/"):  # another repository inside this one
            if not hidden(below.rstrip("/")):
                yield from (
                    f for f in _below(path.rstrip("/"), out, True, found) if not out(os.path.relpath(f, folder))
                )
        elif below.endswith(SUFFIXES):
            if not hidden(below):
                yield from _checked(path, out, found)
        elif "." not in os.path.basename(below) and not hidden(below) and _submodule(path):
            yield from _below(path, out, True, found)


def _submodule(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _checked(path: str, out: Callable[[str], bool], found: Found) -> Iterator[str]:
    """The file, if it is one."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            found.troubles.append((path, "is a link that leads nowhere"))
        return  # deleted, and git does not know yet
    except OSError as error:
        found.troubles.append((path, f"cannot be read: {error.strerror or error}"))
        return
    if stat.S_ISREG(mode):
        yield path
    elif stat.S_ISDIR(mode) and not os.path.islink(path):
        yield from _below(path, out, True, found)


def _walk(folder: str, below: str, out: Callable[[str], bool], found: Found) -> Iterator[str]:
    """The files of a folder and of those inside it, links to folders not followed."""
    stack = [(folder, below)]
    while stack:
        at, inside = stack.pop()
        try:
            with os.scandir(at) as entries:
                listed = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            found.troubles.append((at, f"cannot be read: {error.strerror or error}"))
            continue
        for entry in listed:
            name = f"{inside}/{entry.name}" if inside else entry.name
            path = _join(at, entry.name)
            if out(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                stack.append((path, name))
            elif entry.name.endswith(SUFFIXES):
                yield from (f for f in _checked(path, out, found))


def _join(folder: str, below: str) -> str:
    return below if folder in (".", "") else os.path.join(os.path.normpath(folder), below)


def _matcher(globs: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path below the folder that was asked for is left out; its own folders have been asked about before."""
    names: set[str] = set()
    shapes: list[str] = []
    for glob in globs:
        glob = glob.removeprefix("./").rstrip("/")
        if not any(c in glob for c in "*?[/"):
            names.add(glob)
        else:
            shapes.append(fnmatch.translate(glob.removeprefix("**/")))
            if "/" in glob:
                shapes.append(fnmatch.translate(f"*/{glob.removeprefix('**/')}"))
    pattern = re.compile("|".join(shapes)) if shapes else None

    def out(below: str) -> bool:
        name = below.rpartition("/")[2]
        return name in names or (
            pattern is not None and (pattern.match(below) is not None or pattern.match(name) is not None)
        )

    return out


def _listed_by_git(folder: str) -> list[str] | None:
    """The files below a folder that git does not ignore; None without git or a repository, and inside an ignored folder."""
    at = os.path.abspath(folder)
    while not os.path.exists(os.path.join(at, ".git")):
        if at == os.path.dirname(at):
            return None
        at = os.path.dirname(at)
    listed = _git(folder, "ls-files", "-co", "--exclude-standard", "-z", "--", ".")
    if listed is None:
        return None
    if not listed and _git(folder, "check-ignore", "-q", ".") is not None:
        return None
    return list(dict.fromkeys(name for name in os.fsdecode(listed).split("\0") if name))


def _git(folder: str, *words: str) -> bytes | None:
    """What git prints; None where it fails."""
    import subprocess

    # A hook's GIT_DIR would lead elsewhere; a repository's own configuration must not start a program.
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *words],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
