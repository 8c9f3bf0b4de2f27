"""`--fix` and `--diff`: of what is told, what is mended, and how it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from osler.app.lint.judge import Judge
from osler.app.lint.say import say
from osler.lint.fix import Mended, mend, write
from osler.lint.result import FileResult, Noted
from osler.lint.session import Outcome
from osler.render import words


class Mender:
    """Makes the fixes of what would be told."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.setup = judge.setup

    def mend(self, outcome: Outcome) -> list[Mended]:
        """The files with their fixes, in memory; those in which something was mended."""
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
                mended = mend(path, by, self._wanted, self.setup.plan)
            except OSError as error:
                say(f"{path} cannot be read: {error.strerror or error}")
                continue
            for line in mended.refused:
                say(line)
            if mended.new != mended.old:
                out.append(mended)
        return out

    def mend_bytes(self, name: str, data: bytes) -> Mended:
        """The fixes of one source that lies in no file."""
        mended = mend(name, (), self._wanted, self.setup.plan, data=data)
        for line in mended.refused:
            say(line)
        return mended

    def fix(self, outcome: Outcome) -> bool:
        """Write the fixes; whether any file was changed."""
        made: Counter[str] = Counter()
        files = 0
        for mended in self.mend(outcome):
            try:
                write(mended)
            except OSError as error:
                say(f"{mended.path} cannot be written: {error.strerror or error}")
                continue
            made.update(mended.made)
            files += 1
        if made and not self.setup.wishes.quiet:
            told = ", ".join(f"{rule} {count}" for rule, count in sorted(made.items()))
            say(f"{words.count(made.total(), 'fix', 'fixes')} made in {words.count(files, 'file')} ({told})")
        return bool(files)

    def _wanted(self, noted: list[Noted], results: Mapping[str, FileResult]) -> list[Noted]:
        """What is to be mended of it."""
        verdict = self.judge.verdict(Outcome({**results}))
        shown = {n.key for n in verdict.shown}
        unsafe = self.setup.wishes.unsafe_fixes
        return [n for n in noted if n.key in shown and n.fix is not None and (n.fix.safe or unsafe)]
