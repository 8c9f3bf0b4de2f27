"""What can be asked of `osler lint`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FORMATS = ("text", "concise", "github")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What can be asked for on the command line.

    Attributes:
        paths: files and folders; `-` is stdin.
        json, html, sarif, junit: files to write the report to; `-` is stdout.
        output_format: one of `FORMATS`.
        select, ignore: rules to report, and not.
        overrides: `KEY=VALUE` of `--set`.
        config: the configuration file to use instead of searching.
        fail_on: severity from which the exit code is 1.
        all: also findings that are only possible.
        quiet: no summary and no progress; nothing at all where nothing was found.
        fix, unsafe_fixes: make fixes, also those that may change what the program does.
        diff: show what the fixes would change, and change nothing.
        statistics: count by rule instead of listing.
        baseline: file of known findings; write_baseline: write it.
        warn_unused_ignores: see `osler.core.settings.lint.Lint`.
        stdin_filename: the name under which stdin is read.
        no_cache: neither use nor keep earlier results.
        force_exclude: leave excluded files out even if they are named.
        jobs: processes; None: as configured.
        watch: go on, and tell what changes.
    """

    paths: Sequence[str] = (".",)
    json: str | None = None
    html: str | None = None
    sarif: str | None = None
    junit: str | None = None
    output_format: str = "text"
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    overrides: Sequence[str] = ()
    config: Path | None = None
    fail_on: str | None = None
    all: bool = False
    quiet: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    statistics: bool = False
    baseline: Path | None = None
    write_baseline: bool = False
    warn_unused_ignores: bool = False
    stdin_filename: str | None = None
    no_cache: bool = False
    force_exclude: bool = False
    jobs: int | None = None
    watch: bool = False

    @property
    def written(self) -> dict[str, str]:
        """The files to write, by option."""
        files = {"json": self.json, "html": self.html, "sarif": self.sarif, "junit": self.junit}
        return {option: file for option, file in files.items() if file}
