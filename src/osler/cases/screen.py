"""What is seen while cases are being verified."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, TextIO

from osler.cases.verdict import Verdict


class Watcher(Protocol):
    """Is told of each verdict as it comes."""

    def done(self, verdict: Verdict) -> None:
        """A verdict is in."""


def name_of(verdict: Verdict) -> str:
    """What was verified, in a few words."""
    return f"{verdict.id} (budget {verdict.budget})"


class PlainLines:
    """One line a verdict, for logs and pipes."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total = total
        self.stream = stream
        self.seen = 0

    def done(self, verdict: Verdict) -> None:
        """Write the line."""
        self.seen += 1
        again = " (passed before)" if verdict.resumed else f" {verdict.seconds:.1f} s"
        why = f": {verdict.reason}" if verdict.reason else ""
        count = f"[{self.seen:>{len(str(self.total))}}/{self.total}]"
        self.stream.write(f"{count} {verdict.outcome.value} {name_of(verdict)}{again}{why}\n")
        self.stream.flush()


@contextlib.contextmanager
def progress_on(stream: TextIO, total: int) -> Iterator[Watcher]:
    """A progress bar where the stream is a terminal, plain lines where it is not."""
    if not stream.isatty():
        yield PlainLines(total, stream)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("verifying", total=total)

        class _Bar:
            failed = 0

            def done(self, verdict: Verdict) -> None:
                if verdict.outcome.failed:
                    self.failed += 1
                    why = escape(f"{name_of(verdict)}: {verdict.reason}")
                    bar.console.print(f"[red]{verdict.outcome.value}[/] {why}", highlight=False)
                words = f"verifying, {self.failed} failed" if self.failed else "verifying"
                bar.update(task, advance=1, description=words)

        yield _Bar()
