"""Many files: what is known already, what has to be looked at, by one process or several, in a stable order."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.core.progress import Progress, quiet
from osler.lint.cache import Cache
from osler.lint.plan import Plan
from osler.lint.result import FileResult, Noted, Trouble

ALONE = 30  # files below which starting processes costs more than they save
_WHAT = "reading source"


@dataclass(slots=True)
class Outcome:
    """What linting files gave.

    Attributes:
        results: by file, in the order of the files.
        fresh: how many of them were looked at just now.
    """

    results: dict[str, FileResult] = field(default_factory=dict)
    fresh: int = 0

    def noted(self) -> list[Noted]:
        """Every finding once, by place: two files that lead to the same line have found one fault."""
        found: dict[str, Noted] = {}
        for result in self.results.values():
            for noted in result.noted:
                known = found.get(noted.key)
                if known is None or known.finding.confidence < noted.finding.confidence:
                    found[noted.key] = noted
        order = {file: n for n, file in enumerate(self.results)}
        return sorted(found.values(), key=lambda n: _place(n, order))

    def troubles(self) -> list[tuple[str, Trouble]]:
        """What could not be looked at, by file."""
        return [(path, t) for path, result in self.results.items() for t in result.troubles]


def _place(noted: Noted, order: dict[str, int]) -> tuple[object, ...]:
    where = noted.finding.where
    file = where.file or ""
    return (
        order.get(file, len(order)),
        file,
        where.cell or 0,
        where.line or 0,
        where.character or 0,
        noted.finding.rule,
    )


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lint(
    files: Sequence[str],
    plan: Plan | None = None,
    *,
    cache: Cache | None = None,
    jobs: int = 0,
    progress: Progress = quiet,
) -> Outcome:
    """Look at files.

    Args:
        files: as they are named in messages; each once.
        plan: how they are looked at.
        cache: holds what is known, and takes what is new; saved at the end, and when interrupted.
        jobs: processes; 0: one a core.
        progress: is told how far it has come.
    """
    cache = cache or Cache(None)
    known = cache.known(files)
    left = [f for f in files if f not in known]
    if not left:
        cache.save()
        return Outcome({f: known[f] for f in files})
    # Here, because a run that finds nothing changed needs none of it.
    from osler.lint.linter import Linter, collecting_rarely

    plan = plan or Plan()
    before = {f: _stat(f) for f in left}
    told = 0

    def done(result: FileResult) -> None:
        nonlocal told
        known[result.path] = result
        cache.take(result, before[result.path])
        told += 1
        progress(_WHAT, told, len(left))

    progress(_WHAT, 0, len(left))
    jobs = min(jobs or cores(), len(left))
    try:
        if jobs > 1 and len(left) >= ALONE:
            from osler.lint.pool import Pool

            with contextlib.suppress(OSError):  # no processes: what is left is done here
                Pool(plan, jobs).lint(left, done)
        linter = Linter(plan)
        with collecting_rarely():
            for file in left:
                if file not in known:
                    done(linter.lint(file))
    finally:
        cache.save()
    return Outcome({f: known[f] for f in files}, len(left))


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
