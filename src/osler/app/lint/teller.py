"""How findings are told: as text, as annotations, as a summary, and in files."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from osler.app.errors import UserError
from osler.app.lint.judge import Verdict
from osler.app.lint.say import say
from osler.app.lint.setup import Setup
from osler.core.finding import Severity
from osler.core.report import NotChecked, Report
from osler.lint.result import Noted, Trouble
from osler.lint.session import Outcome
from osler.lint.unused import unused
from osler.render import words
from osler.render.lint_text import Paint, block, headline, statistics

if TYPE_CHECKING:
    from osler.app.run import Outputs
    from osler.lint.fix import Mended

DEFAULT_LEVEL = "warning"  # of --fail-on, as linters do


class Teller:
    """Tells what was found, where it was asked to.

    Raises:
        UserError: a file to write cannot be written.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.wishes = setup.wishes
        self.started = time.time()
        self.to(sys.stderr if "-" in self.wishes.written.values() else sys.stdout)
        self._texts: dict[str, dict[int | None, list[str]]] = {}
        if self.wishes.written:
            self._outputs().check()

    def to(self, out: TextIO) -> None:
        """Tell there from now on."""
        self.out = out
        self.paint = Paint(_coloured(out))

    def print(self, line: str) -> None:
        """One line, whatever the stream can encode."""
        encoding = getattr(self.out, "encoding", None) or "utf-8"
        self.out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")

    def tell(self, outcome: Outcome, verdict: Verdict, troubles: list[tuple[str, Trouble]]) -> int:
        """Tell all of it, and write the files.

        Args:
            outcome: what was looked at.
            verdict: what is to be told of it.
            troubles: what else could not be looked at.

        Returns:
            The exit code.

        Raises:
            UserError: a file cannot be written.
        """
        wishes = self.wishes
        troubles = [*troubles, *outcome.troubles()]
        for path, trouble in troubles:
            say(trouble.at(path))
        notes = self._notes(outcome, verdict)
        level = Severity.parse(self.setup.settings.fail_on or DEFAULT_LEVEL)
        failed = any(n.finding.severity >= level for n in verdict.shown)
        self.findings(verdict.shown)
        if not wishes.quiet and wishes.output_format != "github":
            for note in notes:
                self.print(f"{self.paint('note:', 'quiet')} {note}")
            self.print(self._summary(outcome, verdict, troubles))
        if wishes.written:
            report = self._report(outcome, verdict, troubles, notes)
            if lines := self._outputs().write(report, level):
                raise UserError("; ".join(lines))
        with contextlib.suppress(OSError, ValueError):
            self.out.flush()
        unread = len(troubles) > 0 and not any(r.read for r in outcome.results.values())
        return 2 if unread else 1 if failed else 0

    def findings(self, shown: list[Noted]) -> None:
        """Tell findings in the form that was asked for."""
        wishes = self.wishes
        if wishes.statistics:
            from osler.catalogue import RULES

            for line in statistics((n.finding for n in shown), RULES, self.paint):
                self.print(line)
        elif wishes.output_format == "github":
            from osler.render.github import annotation

            for noted in shown:
                self.print(annotation(noted.finding))
        elif wishes.output_format == "concise":
            for noted in shown:
                self.print(headline(noted.finding, self.paint))
        elif not wishes.diff:
            for noted in shown:
                for line in block(noted.finding, self._lines, self.paint, _fixed_by(noted)):
                    self.print(line)
                self.print("")

    def diff(self, mended: Iterable[Mended]) -> None:
        """Show what fixes would change."""
        from osler.lint.fix import diff

        total = 0
        for one in mended:
            total += sum(one.made.values())
            for line in diff(one):
                self.print(words.clean(line))
        say(f"{words.count(total, 'fix', 'fixes')} would be made; nothing was written")

    # --- source -------------------------------------------------------------------------------------------------------

    def give(self, name: str, data: bytes) -> None:
        """Take these bytes for the source of that name."""
        from osler.lint.source import lines_in

        with contextlib.suppress(ValueError):
            self._texts[name] = lines_in(data, Path(name).suffix)

    def forget(self) -> None:
        """Read sources anew: they may have changed."""
        self._texts.clear()

    def _lines(self, path: str, cell: int | None) -> Sequence[str] | None:
        from osler.lint.source import lines_of

        if path not in self._texts:
            try:
                self._texts[path] = lines_of(Path(path))
            except (OSError, ValueError):
                self._texts[path] = {}
        return self._texts[path].get(cell)

    # --- around the findings ------------------------------------------------------------------------------------------

    def _notes(self, outcome: Outcome, verdict: Verdict) -> list[str]:
        notes = []
        for path, result in outcome.results.items():
            for cell, line, complaint in result.complaints:
                notes.append(f"{_at(path, cell, line)}: {complaint}")
        all_ = self.wishes.warn_unused_ignores or self.setup.settings.lint.warn_unused_ignores
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

    def _report(
        self, outcome: Outcome, verdict: Verdict, troubles: list[tuple[str, Trouble]], notes: list[str]
    ) -> Report:
        """What was found as osler's other verbs know it."""
        from osler import __version__
        from osler.records.redact import Redactor

        subject: dict[str, object] = {
            "kind": "lint",
            "command": Redactor().command(["osler", *sys.argv[1:]]),
            "cwd": str(self.setup.cwd),
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
