"""Fixes made: round after round until nothing is left to mend, and nothing kept that does not parse or does not help."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from osler.lint.cells import sources
from osler.lint.edits import CannotEdit, apart, edited
from osler.lint.hit import Edit
from osler.lint.linter import Linter
from osler.lint.plan import Plan
from osler.lint.registry import CHECKS, Check
from osler.lint.result import FileResult, Noted

ROUNDS = 10

Wanted = Callable[[list[Noted], Mapping[str, FileResult]], list[Noted]]


@dataclass(slots=True)
class Mended:
    """A file after its fixes.

    Attributes:
        path: the file, as it was named.
        old, new: its bytes; equal where nothing was mended.
        made: how often each rule's fix was made.
        refused: a line for each fix that could not be kept.
    """

    path: str
    old: bytes
    new: bytes
    made: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


def mend(
    path: str,
    leaders: Iterable[str],
    wanted: Wanted,
    plan: Plan,
    checks: Iterable[Check] | None = None,
    data: bytes | None = None,
) -> Mended:
    """Make the fixes of one file, in memory.

    Args:
        path: the file.
        leaders: the files in which looking has led to findings in this one.
        wanted: of what was found, what is to be mended.
        plan: how files are looked at.
        checks: who looks; by default all.
        data: its bytes, where they are not those on disk.

    Raises:
        OSError: the file cannot be read.
    """
    if data is None:
        data = Path(path).read_bytes()
    done = Mended(path, data, data)
    bench = _Bench(
        path, tuple(dict.fromkeys([path, *leaders])), wanted, plan, tuple(CHECKS if checks is None else checks)
    )
    blocked: set[str] = set()
    found, broken = bench.look(data)
    for _ in range(ROUNDS):
        left = [n for n in found if n.finding.rule not in blocked]
        chosen = [left[i] for i in apart([n.fix for n in left if n.fix is not None])]
        if not chosen:
            break
        new, after, kept = _together(bench, data, chosen, broken, done)
        useless = _useless(kept, found, after)
        if useless:
            blocked |= useless
            done.refused += [
                f"{path}: the fix of {rule} does not mend it and was taken back" for rule in sorted(useless)
            ]
            kept = [n for n in kept if n.finding.rule not in useless]
            new, after, kept = _together(bench, data, kept, broken, done)
        blocked |= {n.finding.rule for n in chosen} - {n.finding.rule for n in kept}
        if not kept:
            continue
        done.made.update(n.finding.rule for n in kept)
        data, found = new, after
    done.new = data
    return done


class _Bench:
    """Looks at a file that is not written yet."""

    def __init__(
        self, path: str, leaders: tuple[str, ...], wanted: Wanted, plan: Plan, checks: tuple[Check, ...]
    ) -> None:
        self.path = path
        self.suffix = Path(path).suffix
        self.leaders = leaders
        self.wanted = wanted
        self.plan = plan
        self.checks = checks

    def look(self, data: bytes) -> tuple[list[Noted], int]:
        """What can be mended in the file, and how many of its parts cannot be read."""
        linter = Linter(self.plan, self.checks)
        linter.give(self.path, data)
        results = {leader: linter.lint(leader) for leader in self.leaders}
        noted: dict[str, Noted] = {}
        for result in results.values():
            for one in result.noted:
                if one.finding.where.file == self.path and one.fix is not None:
                    noted.setdefault(one.key, one)
        broken = sum(not t.ours for t in results[self.path].troubles)
        return self.wanted(list(noted.values()), results), broken


def _together(
    bench: _Bench, data: bytes, chosen: list[Noted], broken: int, done: Mended
) -> tuple[bytes, list[Noted], list[Noted]]:
    """All fixes at once; where the outcome does not parse, one after the other, without those that break it."""
    if not chosen:
        return data, *bench.look(data)[:1], []
    with contextlib.suppress(CannotEdit):
        new = edited(data, bench.suffix, _edits(chosen))
        after, unread = bench.look(new)
        if unread <= broken:
            return new, after, chosen
    kept: list[Noted] = []
    new, after = data, bench.look(data)[0]
    for one in chosen:
        rule, line = one.finding.rule, one.finding.where.line
        try:
            tried = edited(data, bench.suffix, _edits([*kept, one]))
        except CannotEdit as error:
            done.refused.append(f"{bench.path}:{line}: the fix of {rule} was left out: {error}")
            continue
        found, unread = bench.look(tried)
        if unread > broken:
            done.refused.append(f"{bench.path}:{line}: the fix of {rule} was left out: the file would not parse")
            continue
        kept.append(one)
        new, after = tried, found
    return new, after, kept


def _edits(noted: list[Noted]) -> list[Edit]:
    return [edit for one in noted if one.fix is not None for edit in one.fix.edits]


def _useless(kept: list[Noted], before: list[Noted], after: list[Noted]) -> set[str]:
    """The rules of which as much can be mended afterwards as before."""
    then, now = Counter(n.finding.rule for n in before), Counter(n.finding.rule for n in after)
    return {n.finding.rule for n in kept if now[n.finding.rule] >= then[n.finding.rule]}


def diff(mended: Mended) -> Iterator[str]:
    """The lines of a unified diff; of a notebook, one for each cell."""
    if mended.path.endswith(".ipynb"):
        before, after = _cells(mended.old), _cells(mended.new)
        pairs = [(f"{mended.path}:cell {n}", before.get(n, ""), text) for n, text in after.items()]
    else:
        pairs = [(mended.path, _text(mended.old), _text(mended.new))]
    for name, old, new in pairs:
        lines = difflib.unified_diff(_lines(old), _lines(new), name, name, lineterm="")
        yield from (line.rstrip("\r\n") for line in lines)


def _text(data: bytes) -> str:
    from osler.syntax.text import decode

    return decode(data).text


def _cells(data: bytes) -> dict[int, str]:
    return {s.number: s.text for s in sources(data.decode("utf-8-sig"))}


def _lines(text: str) -> list[str]:
    return text.split("\n")[: -1 if text.endswith("\n") else None]


def write(mended: Mended) -> None:
    """Put the new bytes in the place of the old ones, at once, with the file's mode; a link is followed.

    Raises:
        OSError: it cannot be written, or has changed since it was read.
    """
    path = os.path.realpath(mended.path)
    about = os.stat(path)
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "no permission", path)
    if Path(path).read_bytes() != mended.old:
        raise OSError("it has changed meanwhile")
    fd, temporary = tempfile.mkstemp(prefix=".osler-", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "wb") as handle:
            handle.write(mended.new)
        os.chmod(temporary, stat.S_IMODE(about.st_mode))
        with contextlib.suppress(OSError):
            os.chown(temporary, about.st_uid, about.st_gid)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
