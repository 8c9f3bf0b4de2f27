"""`osler check …`: one check of data, shown and written as asked, with the exit code that a pipeline can act on."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osler.app.config import Loaded, load
from osler.app.errors import UserError
from osler.app.ignores import apply
from osler.app.run import Outputs
from osler.core.finding import Confidence, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import Report
from osler.core.settings import Settings

DEFAULT_LEVEL = "warning"  # of --fail-on, as linters do


@dataclass(frozen=True, slots=True)
class Wishes:
    """What every check can be asked for on the command line.

    Attributes:
        outputs: files to write the report to.
        select, ignore: rules to report, and not.
        overrides: `KEY=VALUE` of `--set`.
        config: the configuration file to use instead of searching.
        fail_on: severity from which the exit code is 1.
        all: also show findings that are only possible, and let them count.
        verbose: every row of the tables, and why each thing was not checked.
        quiet: no progress bar, and nothing printed where nothing was found.
    """

    outputs: Outputs = field(default_factory=Outputs)
    select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)
    config: Path | None = None
    fail_on: str | None = None
    all: bool = False
    verbose: bool = False
    quiet: bool = False

    def settings(self) -> Loaded:
        """The settings in force."""
        return load(
            Path.cwd(),
            self.config,
            self.overrides,
            select=self.select,
            ignore=self.ignore,
            fail_on=self.fail_on,
        )


def check(look: Callable[[Settings, Progress], Report], wishes: Wishes) -> int:
    """Run one check and show its report.

    Args:
        look: makes the report.
        wishes: see `Wishes`.

    Returns:
        0, or 1 where a finding is at or above `fail_on`.

    Raises:
        UserError: the data cannot be read, an argument makes no sense, or a file cannot be written.
    """
    loaded = wishes.settings()
    wishes.outputs.check()
    with understood(), bar(wishes.quiet) as progress:
        report = look(loaded.settings, progress)
    report.subject.setdefault("command", _command())
    report.subject.setdefault("cwd", str(Path.cwd()))
    report = apply(report, loaded.settings)
    return show(report, loaded.settings, wishes)


def show(report: Report, settings: Settings, wishes: Wishes) -> int:
    """Print and write a report; the exit code."""
    from rich.console import Console

    from osler.catalogue import RULES
    from osler.render.terminal import print_report

    level = Severity.parse(settings.fail_on or DEFAULT_LEVEL)
    failed = bool(report.at_least(level, Confidence.POSSIBLE if wishes.all else Confidence.PROBABLE))
    piped = "-" in dataclasses.astuple(wishes.outputs)
    if failed or not wishes.quiet:
        console = Console(stderr=piped, highlight=False)
        print_report(report, RULES, console, all=wishes.all, verbose=wishes.verbose)
    if troubles := wishes.outputs.write(report, level):
        raise UserError("; ".join(troubles))
    return 1 if failed else 0


def pairs(words: list[str] | None, option: str) -> dict[str, str] | None:
    """`A=B` words as a mapping; None where there are none.

    Raises:
        UserError: one of them has no `=`.
    """
    out = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise UserError(f"{option} {word}: give NAME=COLUMN")
        out[name] = value
    return out or None


@contextlib.contextmanager
def understood() -> Iterator[None]:
    """Within, data that cannot be used ends in one line."""
    from osler.data.need import DataError

    try:
        yield
    except DataError as error:
        raise UserError(str(error)) from None


@contextlib.contextmanager
def bar(silent: bool = False) -> Iterator[Progress]:
    """A progress bar on stderr, where stderr is a terminal."""
    if silent or not sys.stderr.isatty():
        yield quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield progress


def _command() -> list[str]:
    from osler.records.redact import Redactor

    return Redactor().command(["osler", *sys.argv[1:]])
