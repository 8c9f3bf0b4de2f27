"""The way of one call: look, judge, mend, tell."""

from __future__ import annotations

import sys

from osler.app.errors import UserError
from osler.app.lint.judge import Judge
from osler.app.lint.say import say
from osler.app.lint.setup import Setup
from osler.app.lint.teller import Teller
from osler.app.lint.wishes import Wishes
from osler.lint.result import Trouble
from osler.lint.session import Outcome
from osler.render import words


def lint(wishes: Wishes) -> int:
    """Look at source, and tell.

    Returns:
        0; 1 where a finding is at or above `fail_on`; 2 where nothing could be read.

    Raises:
        UserError: a path does not exist, a setting or a baseline makes no sense, a file cannot be written.
    """
    setup = Setup(wishes)
    judge = Judge(setup)
    teller = Teller(setup)
    if "-" in wishes.paths:
        return _stdin(judge, teller)
    files, troubles = setup.files()
    if wishes.watch:
        from osler.app.lint.watch import watch

        watch(judge, teller, files)
    cache = setup.cache()
    outcome = setup.look(files, cache)
    if wishes.write_baseline:
        return _write_baseline(judge, teller, outcome, troubles)
    if wishes.diff or wishes.fix or wishes.unsafe_fixes:
        from osler.app.lint.mender import Mender

        mender = Mender(judge)
        if wishes.diff:
            teller.diff(mender.mend(outcome))
        elif mender.fix(outcome):
            outcome = setup.look(files, cache)
    return teller.tell(outcome, judge.verdict(outcome), troubles)


def _write_baseline(judge: Judge, teller: Teller, outcome: Outcome, troubles: list[tuple[str, Trouble]]) -> int:
    for path, trouble in [*troubles, *outcome.troubles()]:
        say(trouble.at(path))
    verdict = judge.verdict(outcome)
    file = judge.write_baseline(verdict)
    if not judge.setup.wishes.quiet:
        teller.print(f"osler: {words.count(len(verdict.shown), 'finding')} written to {words.path(str(file), None)}")
    return 0


def _stdin(judge: Judge, teller: Teller) -> int:
    """Look at what stdin gives."""
    from osler.lint.linter import Linter

    wishes = judge.setup.wishes
    if len(wishes.paths) > 1:
        raise UserError("- (stdin) cannot be mixed with other paths")
    if wishes.watch or wishes.write_baseline:
        raise UserError("- (stdin) goes with neither --watch nor --write-baseline")
    data = sys.stdin.buffer.read()
    name = wishes.stdin_filename or "<stdin>"
    if wishes.fix or wishes.unsafe_fixes or wishes.diff:
        from osler.app.lint.mender import Mender

        mended = Mender(judge).mend_bytes(name, data)
        if wishes.diff:
            teller.diff([mended] if mended.new != mended.old else [])
        else:
            # The mended source goes where the editor waits for it; what is left to say goes beside it.
            sys.stdout.buffer.write(mended.new)
            sys.stdout.buffer.flush()
            teller.to(sys.stderr)
            data = mended.new
    linter = Linter(judge.setup.plan)
    linter.give(name, data)
    outcome = Outcome({name: linter.lint(name)}, 1)
    teller.give(name, data)
    return teller.tell(outcome, judge.verdict(outcome), [])
