"""`osler lint`: the faults that the source shows, with their fixes, as text, annotations or files.

A run that finds nothing changed must answer within a few tenths of a second: what only a cold run, a fix or a written
report needs is imported there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from osler.app.config import find, load
from osler.app.errors import UserError
from osler.app.ignores import wanted
from osler.core.finding import Confidence, Severity
from osler.core.progress import Progress, quiet
from osler.core.report import NotChecked, Report
from osler.core.settings import Settings, build
from osler.lint.baseline import Baseline, NoBaseline
from osler.lint.cache import Cache, place, rules_in_force
from osler.lint.files import Excludes, NoSuchPath, discover
from osler.lint.result import Comment, FileResult, Noted, Trouble
from osler.lint.session import Outcome
from osler.lint.session import lint as look
from osler.lint.unused import ignore, unused
from osler.render import words
from osler.render.lint_text import Paint, block, headline, statistics

if TYPE_CHECKING:
    from osler.app.run import Outputs
    from osler.lint.fix import Mended
    from osler.lint.linter import Plan

DEFAULT_LEVEL = "warning"  # of --fail-on, as linters do
FORMATS = ("text", "concise", "github")
_POLL_S = 0.5
_SEARCH_EVERY = 4  # looks at known files between two searches for new ones


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


@dataclass(slots=True)
class Verdict:
    """What is to be told of the findings.

    Attributes:
        shown: by place.
        hidden: how many comments and the configuration left out.
        held_back: how many are only possible.
        known: how many the baseline knows; stale: how many of its entries are no more.
        comments: file, comment and rule of each ignore comment that left something out.
    """

    shown: list[Noted] = field(default_factory=list)
    hidden: int = 0
    held_back: int = 0
    known: int = 0
    stale: int = 0
    comments: set[tuple[str, Comment, str]] = field(default_factory=set)


def lint(wishes: Wishes) -> int:
    """Look at source, and tell.

    Returns:
        0; 1 where a finding is at or above `fail_on`; 2 where nothing could be read.

    Raises:
        UserError: a path does not exist, a setting or a baseline makes no sense, a file cannot be written.
    """
    return Lint(wishes).run()


class Lint:
    """One call of `osler lint`."""

    def __init__(self, wishes: Wishes) -> None:
        if wishes.output_format not in FORMATS:
            raise UserError(f"--output-format {wishes.output_format}: it is one of {', '.join(FORMATS)}")
        self.wishes = wishes
        self.cwd = Path.cwd()
        self.home = None if wishes.no_cache else place(self.cwd)
        self.settings, self.config = _settings(wishes, self.cwd, self.home)
        if not self.settings.lint.cache:
            self.home = None
        self.torch = torch_version(self.settings.lint.torch)
        self.baseline = self._baseline()
        self.out: TextIO = sys.stderr if "-" in wishes.written.values() else sys.stdout
        self.paint = Paint(_coloured(self.out))
        self.started = time.time()
        self._texts: dict[str, object] = {}
        if wishes.written:
            self._outputs().check()

    # --- the way ------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        wishes = self.wishes
        if "-" in wishes.paths:
            return self._stdin()
        files, troubles = self._files()
        if wishes.watch:
            return self._watch(files)
        cache = self._cache()
        outcome = self._look(files, cache)
        verdict = self.judge(outcome)
        if wishes.write_baseline:
            return self._write_baseline(outcome, troubles)
        if wishes.diff:
            self._diff(self._mend(outcome))
        elif wishes.fix or wishes.unsafe_fixes:
            changed = self._fix(outcome)
            if changed:
                outcome = self._look(files, cache)
                verdict = self.judge(outcome)
        return self._tell(outcome, verdict, troubles)

    def _files(self) -> tuple[list[str], list[tuple[str, Trouble]]]:
        lint = self.settings.lint
        excludes = Excludes((*lint.exclude, *lint.extend_exclude), lint.respect_gitignore, self.wishes.force_exclude)
        try:
            found = discover(self.wishes.paths or (".",), excludes)
        except NoSuchPath as error:
            raise UserError(str(error)) from None
        return found.files, [(path, Trouble(message)) for path, message in found.troubles]

    def _cache(self) -> Cache:
        from osler import __version__

        lint = self.settings.lint
        key = (
            str(self.cwd),
            __version__,
            sys.version_info[:3],
            rules_in_force(),
            self.torch,
            lint.max_mb,
            lint.seconds,
        )
        return Cache.load(self.home, key)

    def _look(self, files: Sequence[str], cache: Cache) -> Outcome:
        lint = self.settings.lint
        with self._progress() as progress:
            return look(
                files,
                self.torch,
                cache=cache,
                jobs=lint.jobs if self.wishes.jobs is None else self.wishes.jobs,
                most_bytes=int(lint.max_mb * 1e6),
                seconds=lint.seconds,
                progress=progress,
            )

    @contextlib.contextmanager
    def _progress(self) -> Iterator[Progress]:
        """A bar on a terminal, for what takes long enough to ask how long it takes."""
        with contextlib.ExitStack() as stack:
            drawn: list[Progress] = []

            def progress(what: str, done: int, total: int | None) -> None:
                if not drawn and (total or 0) > 20:
                    from osler.app.check import bar

                    drawn.append(stack.enter_context(bar()))
                if drawn:
                    drawn[0](what, done, total)

            yield progress if sys.stderr.isatty() and not self.wishes.quiet else quiet

    def plan(self) -> Plan:
        """How files are looked at in this process."""
        from osler.lint.linter import Plan

        return Plan(self.torch, int(self.settings.lint.max_mb * 1e6), self.settings.lint.seconds)

    def judge(self, outcome: Outcome) -> Verdict:
        """Leave out what nobody wants to hear."""
        noted = outcome.noted()
        ignored = ignore(noted, outcome.results, self._comments_of)
        kept = [n for n in ignored.kept if wanted(n.finding, self.settings, self._base())]
        verdict = Verdict(hidden=len(noted) - len(kept), comments=ignored.used)
        if self.baseline is not None:
            new = self.baseline.new(kept)
            verdict.known = len(kept) - len(new)
            verdict.stale = self.baseline.stale(kept, outcome.results)
            kept = new
        verdict.shown = [n for n in kept if self.wishes.all or n.finding.confidence > Confidence.POSSIBLE]
        verdict.held_back = len(kept) - len(verdict.shown)
        return verdict

    def _base(self) -> Path:
        """The folder that globs in the configuration are relative to."""
        return self.cwd if self.config is None else self.config.absolute().parent

    def _comments_of(self, path: str) -> list[Comment]:
        from osler.lint.source import read_comments

        return read_comments(Path(path))

    # --- fixes --------------------------------------------------------------------------------------------------------

    def _wanted(self, noted: list[Noted], results: Mapping[str, FileResult]) -> list[Noted]:
        """What is to be mended of it."""
        verdict = self.judge(Outcome({**results}))
        shown = {n.key for n in verdict.shown}
        return [n for n in noted if n.key in shown and n.fix is not None and (n.fix.safe or self.wishes.unsafe_fixes)]

    def _mend(self, outcome: Outcome) -> list[Mended]:
        from osler.lint.fix import mend

        leaders: dict[str, list[str]] = {}
        for path, result in outcome.results.items():
            for noted in result.noted:
                if noted.fix is not None and noted.finding.where.file:
                    leaders.setdefault(noted.finding.where.file, []).append(path)
        out = []
        for path, by in leaders.items():
            if path not in outcome.results or not self._wanted(outcome.noted(), outcome.results):
                continue  # a file that was not asked for is not changed
            try:
                mended = mend(path, by, self._wanted, self.plan())
            except OSError as error:
                _say(f"{path} cannot be read: {error.strerror or error}")
                continue
            for line in mended.refused:
                _say(line)
            if mended.new != mended.old:
                out.append(mended)
        return out

    def _diff(self, mended: Iterable[Mended]) -> None:
        from osler.lint.fix import diff

        total = 0
        for one in mended:
            total += sum(one.made.values())
            for line in diff(one):
                self._print(words.clean(line))
        _say(f"{words.count(total, 'fix', 'fixes')} would be made; nothing was written")

    def _fix(self, outcome: Outcome) -> bool:
        from osler.lint.fix import write

        made: Counter[str] = Counter()
        files = 0
        for mended in self._mend(outcome):
            try:
                write(mended)
            except OSError as error:
                _say(f"{mended.path} cannot be written: {error.strerror or error}")
                continue
            made.update(mended.made)
            files += 1
        if made and not self.wishes.quiet:
            told = ", ".join(f"{rule} {count}" for rule, count in sorted(made.items()))
            _say(f"{words.count(made.total(), 'fix', 'fixes')} made in {words.count(files, 'file')} ({told})")
        return bool(files)

    # --- telling ------------------------------------------------------------------------------------------------------

    def _tell(self, outcome: Outcome, verdict: Verdict, troubles: list[tuple[str, Trouble]]) -> int:
        wishes = self.wishes
        troubles = [*troubles, *outcome.troubles()]
        for path, trouble in troubles:
            _say(trouble.at(path))
        notes = self._notes(outcome, verdict)
        level = Severity.parse(self.settings.fail_on or DEFAULT_LEVEL)
        failed = any(n.finding.severity >= level for n in verdict.shown)
        self._findings(verdict.shown)
        if not wishes.quiet and wishes.output_format != "github":
            for note in notes:
                self._print(f"{self.paint('note:', 'quiet')} {note}")
            self._print(self._summary(outcome, verdict, troubles))
        if wishes.written:
            report = self.report(outcome, verdict, troubles, notes)
            if lines := self._outputs().write(report, level):
                raise UserError("; ".join(lines))
        with contextlib.suppress(OSError, ValueError):
            self.out.flush()
        unread = len(troubles) > 0 and not any(r.read for r in outcome.results.values())
        return 2 if unread else 1 if failed else 0

    def _findings(self, shown: list[Noted]) -> None:
        wishes = self.wishes
        if wishes.statistics:
            from osler.catalogue import RULES

            for line in statistics((n.finding for n in shown), RULES, self.paint):
                self._print(line)
        elif wishes.output_format == "github":
            from osler.render.github import annotation

            for noted in shown:
                self._print(annotation(noted.finding))
        elif wishes.output_format == "concise":
            for noted in shown:
                self._print(headline(noted.finding, self.paint))
        elif not wishes.diff:
            for noted in shown:
                for line in block(noted.finding, self._lines, self.paint, _fixed_by(noted)):
                    self._print(line)
                self._print("")

    def _lines(self, path: str, cell: int | None) -> Sequence[str] | None:
        from osler.lint.source import lines_of

        if path not in self._texts:
            try:
                self._texts[path] = lines_of(Path(path))
            except (OSError, ValueError):
                self._texts[path] = {}
        found: object = self._texts[path]
        return found.get(cell) if isinstance(found, dict) else None

    def _notes(self, outcome: Outcome, verdict: Verdict) -> list[str]:
        notes = []
        for path, result in outcome.results.items():
            for cell, line, complaint in result.complaints:
                notes.append(f"{_at(path, cell, line)}: {complaint}")
        all_ = self.wishes.warn_unused_ignores or self.settings.lint.warn_unused_ignores
        for path, comment, rule in unused(outcome.results, verdict.comments, all_):
            notes.append(
                f"{_at(path, comment.cell, comment.line)}: the ignore comment leaves out nothing: {rule} is not found here"
            )
        return [words.one_line(note) for note in notes]

    def _summary(self, outcome: Outcome, verdict: Verdict, troubles: list[tuple[str, Trouble]]) -> str:
        findings = [n.finding for n in verdict.shown]
        files = len(outcome.results)
        read = sum(r.read for r in outcome.results.values())
        if not files and not troubles:
            return "osler: there is no Python file and no notebook here"
        what = words.tally(findings)
        if findings:
            worst = max(f.severity for f in findings).label
            what = f"{self.paint(what, worst)} in {words.count(len({f.where.file for f in findings}), 'file')}"
        parts = [f"osler: {what} ({words.count(read, 'file')} read)"]
        safe = sum(n.fix is not None and n.fix.safe for n in verdict.shown)
        unsafe = sum(n.fix is not None and not n.fix.safe for n in verdict.shown)
        if safe and not self.wishes.diff:
            parts.append(f"--fix mends {safe}")
        if unsafe and not self.wishes.diff:
            parts.append(f"--unsafe-fixes mends {unsafe}{' more' if safe else ''}")
        if verdict.hidden:
            parts.append(f"{verdict.hidden} left out by comments or the configuration")
        if verdict.known or verdict.stale:
            gone = f", {verdict.stale} of its entries are no more" if verdict.stale else ""
            parts.append(f"{verdict.known} known to the baseline{gone}")
        if verdict.held_back:
            parts.append(f"{words.count(verdict.held_back, 'possible finding')} held back (--all shows them)")
        if troubles:
            whole = len({p for p, t in troubles if t.whole})
            partly = len({p for p, t in troubles if not t.whole})
            told = [f"{words.count(whole, 'file')} not checked"] if whole else []
            told += [f"{words.count(partly, 'file')} checked in part"] if partly else []
            parts += told
        return "; ".join(parts)

    def report(
        self, outcome: Outcome, verdict: Verdict, troubles: list[tuple[str, Trouble]], notes: list[str]
    ) -> Report:
        """What was found as osler's other verbs know it."""
        from osler import __version__
        from osler.records.redact import Redactor

        subject: dict[str, object] = {
            "kind": "lint",
            "command": Redactor().command(["osler", *sys.argv[1:]]),
            "cwd": str(self.cwd),
            "files": len(outcome.results),
            "started": self.started,
            "seconds": round(time.time() - self.started, 3),
        }
        counts = {"suppressed": verdict.hidden, "held_back": verdict.held_back, "known": verdict.known}
        subject |= {name: count for name, count in counts.items() if count}
        return Report(
            subject,
            findings=[n.finding for n in verdict.shown],
            not_checked=[NotChecked(_at(p, t.cell, t.line), t.message, is_rule=False) for p, t in troubles],
            notes=notes,
            version=__version__,
        )

    def _outputs(self) -> Outputs:
        from osler.app.run import Outputs

        wishes = self.wishes
        return Outputs(json=wishes.json, html=wishes.html, sarif=wishes.sarif, junit=wishes.junit)

    def _print(self, line: str) -> None:
        encoding = getattr(self.out, "encoding", None) or "utf-8"
        self.out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    # --- baseline -----------------------------------------------------------------------------------------------------

    def _baseline_file(self) -> Path | None:
        if self.wishes.baseline is not None:
            return self.wishes.baseline
        return self._base() / self.settings.lint.baseline if self.settings.lint.baseline else None

    def _baseline(self) -> Baseline | None:
        file = self._baseline_file()
        if self.wishes.write_baseline:
            if file is None:
                raise UserError(
                    "--write-baseline needs the file: --baseline FILE, or lint.baseline in the configuration"
                )
            return None
        if file is None:
            return None
        try:
            return Baseline.load(file)
        except NoBaseline as error:
            raise UserError(str(error)) from None

    def _write_baseline(self, outcome: Outcome, troubles: list[tuple[str, Trouble]]) -> int:
        file = self._baseline_file()
        assert file is not None
        for path, trouble in [*troubles, *outcome.troubles()]:
            _say(trouble.at(path))
        shown = self.judge(outcome).shown
        try:
            Baseline.of(shown, file).save(file)
        except OSError as error:
            raise UserError(f"the baseline {file} cannot be written: {error.strerror or error}") from None
        if not self.wishes.quiet:
            self._print(f"osler: {words.count(len(shown), 'finding')} written to {words.path(str(file), None)}")
        return 0

    # --- stdin, and going on ------------------------------------------------------------------------------------------

    def _stdin(self) -> int:
        from osler.lint.linter import Linter
        from osler.lint.source import lines_in

        wishes = self.wishes
        if len(wishes.paths) > 1:
            raise UserError("- (stdin) cannot be mixed with other paths")
        if wishes.watch or wishes.write_baseline:
            raise UserError("- (stdin) goes with neither --watch nor --write-baseline")
        data = sys.stdin.buffer.read()
        name = wishes.stdin_filename or "<stdin>"
        if wishes.fix or wishes.unsafe_fixes or wishes.diff:
            from osler.lint.fix import mend

            mended = mend(name, (), self._wanted, self.plan(), data=data)
            for line in mended.refused:
                _say(line)
            if wishes.diff:
                self._diff([mended] if mended.new != mended.old else [])
            else:
                # The mended source goes where the editor waits for it; what is left to say goes beside it.
                sys.stdout.buffer.write(mended.new)
                sys.stdout.buffer.flush()
                self.out, self.paint = sys.stderr, Paint(_coloured(sys.stderr))
                data = mended.new
        linter = Linter(self.plan())
        linter.give(name, data)
        outcome = Outcome({name: linter.lint(name)}, 1)
        with contextlib.suppress(ValueError):
            self._texts[name] = lines_in(data, Path(name).suffix)
        return self._tell(outcome, self.judge(outcome), [])

    def _watch(self, files: list[str]) -> int:
        """Until interrupted: tell what is new and what is gone after each change."""
        cache = self._cache()
        told: dict[str, Noted] = {}
        grumbled: set[str] = set()
        seen: dict[str, object] = {}
        turn = 0
        while True:
            now = {f: _stamp(f) for f in files}
            if now != seen or not turn:
                first, seen = not turn, now
                outcome = self._look(files, cache)
                self._texts.clear()
                lines = [trouble.at(path) for path, trouble in outcome.troubles()]
                for line in lines:
                    if line not in grumbled:
                        _say(line)
                grumbled = set(lines)
                # A finding that has only moved is none that is new.
                shown = _numbered(self.judge(outcome).shown)
                fresh = [n for key, n in shown.items() if key not in told]
                gone = [n for key, n in told.items() if key not in shown]
                self._findings(fresh)
                for noted in gone:
                    self._print(f"{self.paint('gone:', 'fix')} {headline(noted.finding, self.paint)}")
                if first or fresh or gone:
                    tally = words.tally(n.finding for n in shown.values())
                    self._print(f"osler: {tally} ({words.count(len(files), 'file')}); watching for changes, ^C ends")
                self.out.flush()
                told = shown
            time.sleep(_POLL_S)
            turn += 1
            if turn % _SEARCH_EVERY == 0:
                with contextlib.suppress(UserError):
                    files = self._files()[0]


# --- pieces -----------------------------------------------------------------------------------------------------------


def torch_version(wish: str) -> tuple[int, int] | None:
    """The version to assume: the one that is configured, else the one installed beside osler, else nobody knows.

    Raises:
        UserError: what is configured is no version.
    """
    if wish:
        parts = wish.split(".")
        try:
            return int(parts[0]), int(parts[1])
        except (IndexError, ValueError):
            raise UserError(f"lint.torch = {wish!r} is no version; write e.g. `2.6`") from None
    for folder in sys.path:
        with contextlib.suppress(OSError, ValueError, IndexError):
            for found in Path(folder or ".").glob("torch-*.dist-info"):
                parts = found.name.removeprefix("torch-").split(".")
                return int(parts[0]), int(parts[1])
    return None


def _settings(wishes: Wishes, cwd: Path, home: Path | None) -> tuple[Settings, Path | None]:
    """The settings in force. What has been validated once is not validated again: that takes longer than all the rest."""
    file = wishes.config if wishes.config is not None else find(cwd)
    told = (list(wishes.overrides), list(wishes.select), list(wishes.ignore), wishes.fail_on)
    kept: Path | None = None
    if home is not None and (file is not None or any(told)):
        with contextlib.suppress(OSError):
            from osler import __version__

            text = file.read_bytes() if file is not None else b""
            about = repr((__version__, rules_in_force(), str(file), text, told))
            kept = home / f"settings-{blake2b(about.encode('utf-8', 'surrogatepass'), digest_size=10).hexdigest()}.json"
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
                return build(json.loads(kept.read_bytes())), file
    loaded = load(
        cwd, wishes.config, wishes.overrides, select=wishes.select, ignore=wishes.ignore, fail_on=wishes.fail_on
    )
    if kept is not None:
        with contextlib.suppress(OSError):
            temporary = kept.with_name(f".new-settings-{os.getpid()}")
            temporary.write_text(json.dumps(dataclasses.asdict(loaded.settings)), encoding="utf-8")
            temporary.replace(kept)
    return loaded.settings, loaded.file


def _coloured(stream: TextIO) -> bool:
    """As no-color.org and the terminals of CI services have it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _fixed_by(noted: Noted) -> str:
    if noted.fix is None:
        return ""
    return "--fix" if noted.fix.safe else "--unsafe-fixes"


def _at(path: str, cell: int | None, line: int | None) -> str:
    parts = [path, f"cell {cell}" if cell is not None else "", str(line) if line is not None else ""]
    return ":".join(p for p in parts if p)


def _numbered(noted: Iterable[Noted]) -> dict[str, Noted]:
    """The findings under names that last when lines move."""
    seen: Counter[tuple[str, str | None, str]] = Counter()
    out = {}
    for one in noted:
        key = (one.finding.rule, one.finding.where.file, one.source)
        seen[key] += 1
        out[repr((key, seen[key]))] = one
    return out


def _stamp(path: str) -> object:
    try:
        about = Path(path).stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def _say(line: str) -> None:
    """One line on stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"osler: {words.one_line(line)}\n")
        sys.stderr.flush()
