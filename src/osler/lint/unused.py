"""`# osler: ignore[rule]` comments: which findings they leave out, and which of them leave out nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from osler.lint.result import Comment, FileResult, Noted


@dataclass(slots=True)
class Ignored:
    """The findings of some files, sorted by what their ignore comments say.

    Attributes:
        kept: what no comment speaks of.
        hidden: what one does.
        used: file, comment and rule of each that left something out.
    """

    kept: list[Noted] = field(default_factory=list)
    hidden: list[Noted] = field(default_factory=list)
    used: set[tuple[str, Comment, str]] = field(default_factory=set)


def ignore(
    noted: Iterable[Noted], results: Mapping[str, FileResult], elsewhere: Callable[[str], Iterable[Comment]]
) -> Ignored:
    """Leave out what the comments say.

    Args:
        noted: what was found.
        results: the files that were looked at.
        elsewhere: the comments of another file, into which one of them led.
    """
    out = Ignored()
    others: dict[str, list[Comment]] = {}
    for one in noted:
        where = one.finding.where
        file = where.file or ""
        result = results.get(file)
        if result is None and file not in others:
            others[file] = list(elsewhere(file))
        written = others[file] if result is None else result.comments
        hits = [
            c
            for c in written
            if one.finding.rule in c.rules and c.cell == where.cell and c.first <= (where.line or 0) <= c.last
        ]
        (out.hidden if hits else out.kept).append(one)
        out.used |= {(file, c, one.finding.rule) for c in hits}
    return out


def unused(
    results: Mapping[str, FileResult], used: set[tuple[str, Comment, str]], all: bool = False
) -> list[tuple[str, Comment, str]]:
    """File, comment and rule of each that ignores nothing.

    Args:
        results: the files that were looked at.
        used: as of `ignore`.
        all: also rules that `osler run` or another verb notices as well: the comment may be there for them.
    """
    out = []
    for path, result in results.items():
        if not result.comments or not result.read or any(t.ours for t in result.troubles):
            continue
        # Here, because most runs meet no comment and need no rule.
        from osler.catalogue import RULES
        from osler.lint.registry import RULES as JUDGED

        for comment in result.comments:
            for rule in comment.rules:
                if rule in JUDGED and (all or RULES[rule].routes == ("lint",)) and (path, comment, rule) not in used:
                    out.append((path, comment, rule))
    return out
