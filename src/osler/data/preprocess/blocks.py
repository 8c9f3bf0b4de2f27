"""`osler.guard()`: which rows each fit saw, inside a `with` block."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from osler.core.finding import Finding
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings
from osler.data.need import need


class _Collector:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.findings: dict[str, Finding] = {}
        self.unchecked: dict[tuple[str, str], None] = {}
        self.notes: dict[str, None] = {}

    def awake(self, torch: str | None) -> None:
        """Nothing to keep."""

    def finding(self, finding: Finding) -> None:
        """Keep a finding."""
        self.findings.setdefault(finding.key, replace(finding))

    def again(self, key: str, count: int, last_step: int | None) -> None:
        """Count it."""
        if key in self.findings:
            self.findings[key].count = count

    def points(self, series: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """Nothing to keep."""

    def matrix(self, series: str, rows: Sequence[str], steps: Sequence[int], values: Sequence[Sequence[float]]) -> None:
        """Nothing to keep."""

    def not_checked(self, what: str, why: str) -> None:
        """Keep what could not be judged."""
        self.unchecked.setdefault((what, why))

    def overhead(self, figures: Mapping[str, float | int | str]) -> None:
        """Nothing to keep."""

    def environment(self, facts: Mapping[str, object]) -> None:
        """Nothing to keep."""

    def layers(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Nothing to keep."""

    def note(self, text: str) -> None:
        """Keep a line."""
        self.notes.setdefault(text)

    def folder(self, name: str) -> Path | None:
        """No files are written."""
        return None

    def flush(self) -> None:
        """Nothing waits."""

    def close(self, steps: int) -> None:
        """Nothing to do."""


class Guard:
    """What `osler.guard()` gives. Use it as a context manager; `report()` holds what was found."""

    def __init__(self, watch: Sequence[type], settings: Settings) -> None:
        self._watch = tuple(watch)
        self._settings = settings
        self._sink = _Collector()
        self._began = time.time()
        self._passive = False

    def __enter__(self) -> Guard:
        need("sklearn", "data", "osler.guard()")
        from osler.data.preprocess import patches
        from osler.data.preprocess.watcher import Watcher

        self._began = time.time()
        self._sink = _Collector()
        self._passive = patches.current is not None
        self._watcher = Watcher(self._watch)
        if not self._passive:  # under `osler run` the whole process is watched; the block belongs to that report
            self._watcher.attach(self._sink, self._settings, {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watcher.close()

    def report(self) -> Report:
        """The report so far; final once the block has ended."""
        from osler import __version__

        notes = list(self._sink.notes)
        if self._passive:
            notes.append(
                "this process is watched already (osler run, or an outer guard): that report holds these findings"
            )
        return Report(
            subject={
                "kind": "guard",
                "command": [str(a) for a in sys.argv[:1]],
                "started": self._began,
                "seconds": round(time.time() - self._began, 3),
            },
            findings=[replace(f) for f in self._sink.findings.values()],
            not_checked=[NotChecked(what, why) for what, why in self._sink.unchecked],
            notes=notes,
            version=__version__,
        )


def guard(*, watch: Sequence[type] = (), settings: Settings | None = None) -> Guard:
    """Watch which rows every fit of a transformer sees, inside a `with` block.

        with osler.guard() as g:
            run_experiment()
        g.report()

    Results, exceptions and estimators are as without it; the patches come off when the block ends.

    Args:
        watch: classes with `fit` and `transform` that do not inherit from scikit-learn's BaseEstimator.
        settings: the settings tree.

    Raises:
        DataError: on entering the block, where scikit-learn is not installed.
    """
    return Guard(watch, settings or Settings())
