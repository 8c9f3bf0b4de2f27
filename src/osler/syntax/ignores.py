"""The `# osler: ignore[rule] reason` comments of a source."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

_COMMENT = re.compile(r"#\s*osler\s*:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?", re.IGNORECASE)


class Written(NamedTuple):
    """A comment as it stands in the source.

    Attributes:
        line: where it stands, 1-based.
        first, last: the lines of the statement that it counts for.
        rules: the known rules that it names.
    """

    line: int
    first: int
    last: int
    rules: tuple[str, ...]


@dataclass(slots=True)
class Comments:
    """The ignore comments of one file.

    Attributes:
        rules: for each 1-based line the rules that are not reported there.
        complaints: line and text of each comment that does not do what its writer wanted.
        written: the comments that name a known rule, in order.
    """

    rules: dict[int, set[str]] = field(default_factory=dict)
    complaints: list[tuple[int, str]] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)


def comments(text: str) -> Comments:
    """The ignore comments of a source text; what stands after a place that cannot be tokenized is read line by line."""
    found = Comments()
    if _COMMENT.search(text) is None:
        return found
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


def _complain_alone(found: Comments, line: int, comment: str) -> None:
    if _COMMENT.search(comment):
        text = "the ignore comment stands on a line of its own; put it at the end of the line that it is about"
        found.complaints.append((line, text))


def _note(found: Comments, lines: Iterable[int], written: list[tuple[int, str]]) -> None:
    """Enter the comments of one statement for all its lines."""
    lines = list(lines)
    for number, comment in written:
        match = _COMMENT.search(comment)
        if match is None:
            continue
        from osler.catalogue import UnknownRule, rule

        names: list[str] = []
        wanted = [n.strip() for n in (match["rules"] or "").split(",") if n.strip()]
        if not wanted:
            text = "the ignore comment names no rule; write `# osler: ignore[rule-name] reason`"
            found.complaints.append((number, text))
        for name in wanted:
            try:
                names.append(rule(name).name)
            except UnknownRule as err:
                found.complaints.append((number, f"the ignore comment does nothing: {err}"))
        if names:
            found.written.append(Written(number, lines[0], lines[-1], tuple(names)))
            for line in lines:
                found.rules.setdefault(line, set()).update(names)
