"""What the user asked not to hear: `select`, `ignore`, `per-file-ignores` and `# osler: ignore[rule] reason`."""

from __future__ import annotations

import dataclasses
import fnmatch
import linecache
import tokenize
from collections.abc import Callable
from pathlib import Path

from osler.core.finding import Finding
from osler.core.report import Report
from osler.core.settings import Settings
from osler.syntax.ignores import Comments, comments

Reader = Callable[[str], "str | None"]


def apply(report: Report, settings: Settings, read: Reader | None = None, base: Path | None = None) -> Report:
    """The report without what is not wanted.

    A comment counts for every line of the statement that it stands in, so that it can follow the closing bracket of a
    call over several lines. `subject["suppressed"]` and a note say how many findings were left out; a comment that
    names an unknown rule, or none, becomes a note with the closest names.

    Args:
        report: is not changed.
        settings: `select`, `ignore` and `per_file_ignores` are used.
        read: the source text of a file, None where there is none; by default from disk, or what `linecache` holds for
            notebook cells.
        base: the folder to which the globs of `per_file_ignores` are relative; by default the working directory.
    """
    read = read or source
    base = base or Path.cwd()
    files: dict[str, Comments] = {}
    notes = list(report.notes)
    kept: list[Finding] = []
    for finding in report.findings:
        comments = _of(finding, files, read)
        if wanted(finding, settings, base) and finding.rule not in comments.rules.get(finding.where.line or 0, ()):
            kept.append(finding)
    for file, comments in files.items():
        notes += [f"{file}:{line}: {text}" for line, text in comments.complaints]
    subject = dict(report.subject)
    if hidden := len(report.findings) - len(kept):
        subject["suppressed"] = hidden
        what = "1 finding is" if hidden == 1 else f"{hidden} findings are"
        notes.append(f"{what} not shown: left out by the configuration or by `# osler: ignore[…]` comments")
    skipped = [n for n in report.not_checked if not n.is_rule or _asked_for(n.what, settings)]
    return dataclasses.replace(report, subject=subject, findings=kept, not_checked=skipped, notes=notes)


def source(file: str) -> str | None:
    """The text of a source file in its declared encoding, or of a notebook cell (`<…>`); None where there is none."""
    if file.startswith("<"):
        return "".join(linecache.getlines(file)) or None
    try:
        with tokenize.open(file) as handle:
            return handle.read()
    except (OSError, SyntaxError, ValueError):
        return None


def _of(finding: Finding, files: dict[str, Comments], read: Reader) -> Comments:
    file = finding.where.file
    if not file:
        return Comments()
    if file not in files:
        text = read(file)
        files[file] = Comments() if text is None else comments(text)
    return files[file]


def _asked_for(rule: str, settings: Settings) -> bool:
    return (not settings.select or rule in settings.select) and rule not in settings.ignore


def wanted(finding: Finding, settings: Settings, base: Path) -> bool:
    """Whether the configuration lets a finding through: `select`, `ignore` and `per_file_ignores`."""
    if not _asked_for(finding.rule, settings):
        return False
    file = finding.where.file
    if file is None:
        return True
    return not any(
        finding.rule in rules and _matches(file, glob, base) for glob, rules in settings.per_file_ignores.items()
    )


def _matches(file: str, glob: str, base: Path) -> bool:
    """As in ruff: the glob is held against the path relative to `base`, and against the bare name."""
    path = Path(file)
    full = path if path.is_absolute() else base / path
    try:
        relative = full.relative_to(base).as_posix()
    except ValueError:
        relative = full.as_posix()
    shapes = {glob, glob.removeprefix("./"), glob.removeprefix("**/")}
    return any(fnmatch.fnmatchcase(name, shape) for name in (relative, path.name) for shape in shapes)
