"""One process at work: files of a project looked at one after the other, each at most once."""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import FrameType

from osler.lint.facts import Facts
from osler.lint.look import look
from osler.lint.plan import Plan
from osler.lint.registry import CHECKS, Check
from osler.lint.result import FileResult, Noted, Trouble
from osler.lint.source import note_comments
from osler.syntax.module import Module
from osler.syntax.project import Project
from osler.syntax.text import Text, Unreadable, decode, parse

# Python's own limit is met by sums of some hundred terms; a frame of pure Python costs no C stack from 3.11 on.
_DEPTH = 6_000 if sys.version_info >= (3, 11) else 2_500
# Beyond so much parsed text a project is dropped and begun anew: trees take about sixty times as much memory.
_MOST_KEPT = 12_000_000


class _TooLong(BaseException):
    """A file's time is up; no check's `except Exception` is to catch it."""


class Linter:
    """Looks at files; what they import out of the same project is read once for all of them."""

    def __init__(self, plan: Plan, checks: Iterable[Check] = CHECKS) -> None:
        self.plan = plan
        self.checks = tuple(checks)
        self._given: dict[str, bytes] = {}
        self._begin()

    def _begin(self) -> None:
        self._project = Project(self._source)
        self._hashes: dict[str, str] = {}
        self._size = 0

    def give(self, path: str, data: bytes) -> None:
        """Take these bytes for the file's, whatever the disk holds: an editor's buffer, stdin, a fix not yet written."""
        self._given[str(Path(path))] = data
        self._begin()

    def lint(self, path: str) -> FileResult:
        """Look at one file. Never raises because of what is in it."""
        result = FileResult(path)
        if self._size > _MOST_KEPT:
            self._begin()
        try:
            with _deep(), _within(self.plan.settings.seconds):
                self._look(Path(path), result)
        except _TooLong:
            self._begin()
            result.noted.clear()
            result.troubles.append(
                Trouble(f"took longer than {self.plan.settings.seconds:g} s of work and was given up")
            )
        except OSError as error:
            result.troubles.append(Trouble(f"cannot be read: {error.strerror or error}"))
        except Unreadable as error:
            result.troubles.append(Trouble(str(error), error.line))
        except MemoryError:
            self._begin()
            result.troubles.append(Trouble("needs more memory than there is"))
        return result

    # --- reading ------------------------------------------------------------------------------------------------------

    def _bytes(self, path: Path) -> bytes:
        data = self._given.get(str(path))
        if data is None:
            about = path.stat()
            if not stat.S_ISREG(about.st_mode):  # a pipe would wait for a writer
                raise Unreadable("is no file" if not stat.S_ISDIR(about.st_mode) else "is a folder")
            if about.st_size > self.plan.most_bytes:
                raise Unreadable(
                    f"has {about.st_size / 1e6:.1f} MB; files beyond {self.plan.settings.max_mb:g} MB are left out"
                )
            data = path.read_bytes()
        self._hashes[str(path)] = digest(data)
        self._size += len(data)
        return data

    def _source(self, path: Path) -> str | None:
        """What the project reads of a file that another imports."""
        try:
            return decode(self._bytes(path), path.suffix).text
        except (Unreadable, OSError):
            return None

    def _module(self, path: Path, result: FileResult) -> Module:
        known = self._project.at(str(path))
        if known is not None and not known.cells:
            return known
        text = decode(self._bytes(path), path.suffix)
        cells = text.cells
        try:
            tree = parse(text.text)
        except Unreadable as error:
            if not cells:
                raise
            text, tree = _without_broken(text, error, result)
        module = self._project.add(path, text.text, tree)
        module.cells = cells
        return module

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self, path: Path, result: FileResult) -> None:
        try:
            module = self._module(path, result)
        finally:
            result.hash = self._hashes.get(str(path), "")
        note_comments(module.text, module.cells, result)

        def failed(rule: str, error: Exception) -> None:
            if isinstance(error, RecursionError):
                if all(t.ours or "nested" not in t.message for t in result.troubles):
                    result.troubles.append(Trouble("is nested too deeply for some rules", whole=False))
                return
            kind = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            told = f"osler failed on {path} in {rule}: {kind}; please report it"
            result.troubles.append(Trouble(told, whole=False, ours=True))
            if os.environ.get("OSLER_DEBUG"):
                raise error

        facts = Facts(module, self._project, self.plan.torch, self.plan.settings)
        for finding, hit in look(facts, self.checks, failed):
            where = facts.project.at(hit.site.file) or module
            result.noted.append(Noted(finding, where.line(hit.site.line).strip(), hit.fix))
        result.used = {u: h for u in self._used(str(path)) if (h := self._hashes.get(u))}
        result.missing = sorted(self._missing(module, result.used))

    def _used(self, path: str) -> list[str]:
        """The files that the facts came from, and those that theirs came from."""
        found: dict[str, None] = {}
        queue = [path]
        while queue:
            for one in self._project.used.get(queue.pop(), ()):
                if one not in found and one != path:
                    found[one] = None
                    queue.append(one)
        return sorted(found)

    def _missing(self, module: Module, used: Iterable[str]) -> set[str]:
        out: set[str] = set()
        for one in (module, *filter(None, map(self._project.at, used))):
            out |= self._project.missing(one)
        return out


def digest(data: bytes) -> str:
    """What two equal files have in common."""
    return blake2b(data, digest_size=12).hexdigest()


def _without_broken(text: Text, error: Unreadable, result: FileResult) -> tuple[Text, ast.Module]:
    """A notebook without the cells that do not parse: a cell that was never finished says nothing about the others."""
    lines = text.text.split("\n")
    for cell in text.cells:
        own = slice(cell.offset, cell.offset + cell.lines)
        try:
            parse("\n".join(lines[own]) + "\n")
        except Unreadable as own_error:
            lines[own] = [""] * cell.lines
            result.troubles.append(Trouble(str(own_error), own_error.line, cell.number, whole=False))
    if not result.troubles:
        raise error
    joined = "\n".join(lines)
    return Text(joined, text.cells, text.newline, text.encoding), parse(joined)


# --- limits ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def collecting_rarely() -> Iterator[None]:
    """Trees and graphs are made and kept: looking through them for garbage while they grow is lost time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextlib.contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` after so much work; without such a clock (in a thread, on Windows) there is no limit.

    The clock counts the processor's time: a busy machine makes no file slow.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    if signal.getitimer(signal.ITIMER_VIRTUAL)[0]:
        yield  # somebody else's
        return
    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
