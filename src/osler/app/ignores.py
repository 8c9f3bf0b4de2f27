"""What the user asked not to hear: `select`, `ignore`, `per-file-ignores` and `# osler: ignore[rule] reason`."""

from __future__ import annotations

import dataclasses
import fnmatch
import io
import linecache
import re
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from osler.core.finding import Finding
from osler.core.report import Report
from osler.core.settings import Settings

Reader = Callable[[str], "str | None"]

_COMMENT = re.compile(r"#\s*osler\s*:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?", re.IGNORECASE)


@dataclass(slots=True)
class Comments:
    """The ignore comments of one file.

    Attributes:
        rules: for each 1-based line the rules that are not reported there.
        complaints: line and text of each comment that does not do what its writer wanted.
    """

    rules: dict[int, set[str]] = field(default_factory=dict)
    complaints: list[tuple[int, str]] = field(default_factory=list)


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
        if _wanted(finding, settings, base) and finding.rule not in comments.rules.get(finding.where.line or 0, ()):
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


def comments(text: str) -> Comments:
    """The ignore comments of a source text; what stands after a place that cannot be tokenized is read line by line."""
    found = Comments()
    layout = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    first: int | None = None  # first line of the statement being read; None between statements
    pending: list[tuple[int, str]] = []
    reached = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            reached = token.end[0]
            if token.type == tokenize.COMMENT and first is None:
                _complain_alone(found, token.start[0], token.string)
            elif token.type == tokenize.COMMENT:
                pending.append((token.start[0], token.string))
            elif token.type == tokenize.NEWLINE and first is not None:
                _note(found, range(first, reached + 1), pending)
                first, pending = None, []
            elif token.type not in layout and first is None:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pending += [(n, line) for n, line in enumerate(text.splitlines(), 1) if n > reached]
    for line, comment in pending:
        _note(found, (line,), [(line, comment)])
    return found


def source(file: str) -> str | None:
    """The text of a source file in its declared encoding, or of a notebook cell (`<…>`); None where there is none."""
    if file.startswith("<"):
        return "".join(linecache.getlines(file)) or None
    try:
        with tokenize.open(file) as handle:
            return handle.read()
    except (OSError, SyntaxError, ValueError):
        return None


def _complain_alone(found: Comments, line: int, comment: str) -> None:
    if _COMMENT.search(comment):
        text = "the ignore comment stands on a line of its own; put it at the end of the line that it is about"
        found.complaints.append((line, text))


def _note(found: Comments, lines: Iterable[int], written: list[tuple[int, str]]) -> None:
    """Enter the comments of one statement for all its lines."""
    names: set[str] = set()
    for number, comment in written:
        match = _COMMENT.search(comment)
        if match is None:
            continue
        from osler.catalogue import UnknownRule, rule

        wanted = [n.strip() for n in (match["rules"] or "").split(",") if n.strip()]
        if not wanted:
            text = "the ignore comment names no rule; write `# osler: ignore[rule-name] reason`"
            found.complaints.append((number, text))
        for name in wanted:
            try:
                names.add(rule(name).name)
            except UnknownRule as err:
                found.complaints.append((number, f"the ignore comment does nothing: {err}"))
    if names:
        for line in lines:
            found.rules.setdefault(line, set()).update(names)


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


def _wanted(finding: Finding, settings: Settings, base: Path) -> bool:
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
