"""Findings of `osler lint` as text, the way linters print them: place, rule, message, the code, the fix."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.rule import Rule
from osler.render import words

# The lines of a file, or of a cell of a notebook; None where they cannot be read.
Lines = Callable[[str, "int | None"], "Sequence[str] | None"]

_WIDTH = 140
_BEFORE = 2
_CODES = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1;36m",
    "place": "\x1b[1m",
    "edge": "\x1b[34m",
    "quiet": "\x1b[2m",
    "fix": "\x1b[32m",
}


class Paint:
    """Colours pieces of text, or leaves them as they are."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, text: str, style: str) -> str:
        """The text in a style: a severity, `place`, `edge`, `quiet`, `fix`."""
        return f"{_CODES[style]}{text}\x1b[0m" if self.colour and text else text


def place(where: Where) -> str:
    """`path:line:column`, of a notebook `path:cell N:line:column`."""
    character = f":{where.character}" if where.character is not None else ""
    return words.place(where) + character


def headline(finding: Finding, paint: Paint) -> str:
    """`path:line:column severity[rule] message`."""
    sure = "" if finding.confidence == Confidence.DEFINITE else paint(f" ({finding.confidence.label})", "quiet")
    rule = paint(f"{finding.severity.label}[{words.one_line(finding.rule)}]", finding.severity.label)
    return f"{paint(place(finding.where), 'place')} {rule}{sure} {words.sentence(finding.message)}"


def block(finding: Finding, lines: Lines, paint: Paint, fixed_by: str = "") -> Iterator[str]:
    """A finding with its code and its fix.

    Args:
        finding: what was found.
        lines: reads the source.
        paint: colours.
        fixed_by: the option that mends it, if one does.
    """
    yield headline(finding, paint)
    yield from frame(finding, lines, paint)
    if finding.fix:
        option = paint(f" ({fixed_by} does it)", "quiet") if fixed_by else ""
        yield f"{paint('  = fix:', 'fix')} {words.advice(finding.fix)}{option}"


def frame(finding: Finding, lines: Lines, paint: Paint) -> Iterator[str]:
    """The line of a finding and those before it, the marked piece underlined."""
    where = finding.where
    text = lines(where.file, where.cell) if where.file else None
    if text is None or where.line is None or not 1 <= where.line <= len(text):
        return
    first = max(where.line - _BEFORE, 1)
    wide = len(str(where.line))
    edge = paint("|", "edge")
    for number in range(first, where.line + 1):
        shown = _shown(text[number - 1])
        cut = shown if len(shown) <= _WIDTH else shown[: _WIDTH - 3] + "..."
        yield f"{paint(f'{number:>{wide}}', 'edge')} {edge} {cut}".rstrip()
    marked = text[where.line - 1]
    start = (where.character or 1) - 1
    if start >= len(marked):
        return
    stop = where.end_character - 1 if where.end_line == where.line and where.end_character else len(marked.rstrip())
    left = _columns(marked[:start])
    size = max(_columns(marked[: max(stop, start + 1)]) - left, 1)
    if left < _WIDTH - 3:
        carets = "^" * min(size, _WIDTH - 3 - left)
        yield f"{' ' * wide} {edge} {' ' * left}{paint(carets, finding.severity.label)}"


def _shown(line: str) -> str:
    """A line that takes as many columns as `_columns` counts."""
    out: list[str] = []
    at = 0
    for char in line.rstrip():
        piece = " " * (4 - at % 4) if char == "\t" else words.clean(char)
        out.append(piece)
        at += _columns(piece)
    return "".join(out)


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes; a tab goes to the next multiple of four."""
    if text.isascii() and text.isprintable():
        return len(text)
    at = 0
    for char in text:
        if char == "\t":
            at += 4 - at % 4
        elif words.clean(char) and not unicodedata.combining(char):
            at += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return at


def statistics(findings: Iterable[Finding], rules: Mapping[str, Rule], paint: Paint) -> Iterator[str]:
    """How often each rule was found, the most frequent first."""
    findings = list(findings)
    counts = Counter(f.rule for f in findings)
    worst: dict[str, Severity] = {}
    for finding in findings:
        worst[finding.rule] = max(finding.severity, worst.get(finding.rule, Severity.INFO))
    wide = max(map(len, counts), default=0)
    for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        severity = worst[name].label
        summary = rules[name].summary if name in rules else ""
        yield f"{count:>6}  {paint(f'{severity:<7}', severity)}  {name:<{wide}}  {summary}".rstrip()
