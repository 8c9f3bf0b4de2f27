"""`--watch`: go on, and tell what changes."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from osler.app.errors import UserError
from osler.app.lint.judge import Judge
from osler.app.lint.say import say
from osler.app.lint.teller import Teller
from osler.lint.result import Noted
from osler.render import words
from osler.render.lint_text import headline

_POLL_S = 0.5
_SEARCH_EVERY = 4  # looks at known files between two searches for new ones


def watch(judge: Judge, teller: Teller, files: list[str]) -> NoReturn:
    """Until interrupted: tell what is new and what is gone after each change."""
    setup = judge.setup
    cache = setup.cache()
    told: dict[str, Noted] = {}
    grumbled: set[str] = set()
    seen: dict[str, object] = {}
    turn = 0
    while True:
        now = {f: _stamp(f) for f in files}
        if now != seen or not turn:
            first, seen = not turn, now
            outcome = setup.look(files, cache)
            teller.forget()
            lines = [trouble.at(path) for path, trouble in outcome.troubles()]
            for line in lines:
                if line not in grumbled:
                    say(line)
            grumbled = set(lines)
            # A finding that has only moved is none that is new.
            shown = _numbered(judge.verdict(outcome).shown)
            fresh = [n for key, n in shown.items() if key not in told]
            gone = [n for key, n in told.items() if key not in shown]
            teller.findings(fresh)
            for noted in gone:
                teller.print(f"{teller.paint('gone:', 'fix')} {headline(noted.finding, teller.paint)}")
            if first or fresh or gone:
                tally = words.tally(n.finding for n in shown.values())
                teller.print(f"osler: {tally} ({words.count(len(files), 'file')}); watching for changes, ^C ends")
            teller.out.flush()
            told = shown
        time.sleep(_POLL_S)
        turn += 1
        if turn % _SEARCH_EVERY == 0:
            with contextlib.suppress(UserError):
                files = setup.files()[0]


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
