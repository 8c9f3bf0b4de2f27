"""What a check has seen: a place, a sentence, and perhaps an edit that mends it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from osler.core.finding import Confidence, Severity
from osler.syntax.values import Site

# A place inside a text. No name of a file holds a NUL, nor does a name or an expression as it is written in a source.
_PLACE = re.compile("\0(\\d+)\0([^\0]*)\0")


def line_of(site: Site) -> str:
    """A place inside a message or its advice, to be written where `line 40` is to be read.

    A function may have been followed into another file, and in a notebook lines count within their cell: which words the
    reader needs is known only where the finding is made, by `with_lines`.
    """
    return f"\0{site.line}\0{site.file}\0"


def with_lines(text: str, words: Callable[[str, int], str]) -> str:
    """A text of a check with its places in the words that `words` has for a file and a line of it."""

    def said(found: re.Match[str]) -> str:
        out = words(found[2], int(found[1]))
        return out if found.start() else out[:1].upper() + out[1:]

    return _PLACE.sub(said, text)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace a piece of a file's text. Lines are 1-based, columns 0-based and in UTF-8 bytes, as `ast` counts them.

    An insertion has its end where it starts.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits of one file that belong together.

    Attributes:
        edits: do not overlap.
        safe: the program cannot do anything else than before, but for the fault (`--fix`); otherwise it is applied with
            `--unsafe-fixes` only.
        summary: what it does, in a few words: `add map_location="cpu"`.
    """

    edits: tuple[Edit, ...]
    safe: bool
    summary: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence of a rule in a source.

    Attributes:
        site: where; for a missing call, the head of the loop or the function that it is missing from.
        message: one sentence with the place and the names in it; other places by `line_of`.
        advice: what to do here, concretely; other places by `line_of`.
        confidence: `possible` is hidden unless asked for.
        severity: where it differs from the rule's own.
        end_line, end_column: where the marked piece ends, as in `Edit`; by default the end of the node's first line.
        evidence: named facts: other places that matter, as sites, names, counts.
        fix: an edit that mends it.
        touches: what it concerns, as in `osler.core.finding.Finding`.
    """

    site: Site
    message: str
    advice: str
    confidence: Confidence = Confidence.DEFINITE
    severity: Severity | None = None
    end_line: int | None = None
    end_column: int | None = None
    evidence: dict[str, object] = field(default_factory=dict)
    fix: Fix | None = None
    touches: frozenset[str] = frozenset()
