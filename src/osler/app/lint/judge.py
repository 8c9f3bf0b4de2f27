"""What is to be told of the findings: comments, the configuration and the baseline leave out what nobody wants to hear."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from osler.app.errors import UserError
from osler.app.ignores import wanted
from osler.app.lint.setup import Setup
from osler.core.finding import Confidence
from osler.lint.baseline import Baseline, NoBaseline
from osler.lint.result import Comment, Noted
from osler.lint.session import Outcome
from osler.lint.unused import ignore


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


class Judge:
    """Holds what was found against the wishes, the settings and the findings that are known.

    Raises:
        UserError: the baseline cannot be read, or is to be written and nobody has named it.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.file = self._file()
        self.baseline = self._load()

    def verdict(self, outcome: Outcome) -> Verdict:
        """Leave out what nobody wants to hear."""
        noted = outcome.noted()
        ignored = ignore(noted, outcome.results, _comments_of)
        kept = [n for n in ignored.kept if wanted(n.finding, self.setup.settings, self.setup.base)]
        verdict = Verdict(hidden=len(noted) - len(kept), comments=ignored.used)
        if self.baseline is not None:
            new = self.baseline.new(kept)
            verdict.known = len(kept) - len(new)
            verdict.stale = self.baseline.stale(kept, outcome.results)
            kept = new
        verdict.shown = [n for n in kept if self.setup.wishes.all or n.finding.confidence > Confidence.POSSIBLE]
        verdict.held_back = len(kept) - len(verdict.shown)
        return verdict

    def write_baseline(self, verdict: Verdict) -> Path:
        """Keep what is shown as known from now on.

        Returns:
            The file.

        Raises:
            UserError: it cannot be written.
        """
        assert self.file is not None
        try:
            Baseline.of(verdict.shown, self.file).save(self.file)
        except OSError as error:
            raise UserError(f"the baseline {self.file} cannot be written: {error.strerror or error}") from None
        return self.file

    def _file(self) -> Path | None:
        if self.setup.wishes.baseline is not None:
            return self.setup.wishes.baseline
        configured = self.setup.settings.lint.baseline
        return self.setup.base / configured if configured else None

    def _load(self) -> Baseline | None:
        if self.setup.wishes.write_baseline:
            if self.file is None:
                raise UserError(
                    "--write-baseline needs the file: --baseline FILE, or lint.baseline in the configuration"
                )
            return None
        if self.file is None:
            return None
        try:
            return Baseline.load(self.file)
        except NoBaseline as error:
            raise UserError(str(error)) from None


def _comments_of(path: str) -> list[Comment]:
    from osler.lint.source import read_comments

    return read_comments(Path(path))
