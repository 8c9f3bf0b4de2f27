"""What linting one file gave, as plain data that a cache and another process can hand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from osler.core.finding import Finding
from osler.lint.hit import Edit, Fix


class Trouble(NamedTuple):
    """Why a file, or a part of it, was not looked at.

    Attributes:
        message: goes on behind the name of the file.
        line, cell: where, if anywhere; the line is within the cell.
        whole: nothing in the file could be looked at.
        ours: osler itself failed.
    """

    message: str
    line: int | None = None
    cell: int | None = None
    whole: bool = True
    ours: bool = False

    def at(self, path: str) -> str:
        """`path:line: message` in one line."""
        if self.ours:
            return self.message
        cell = f":cell {self.cell}" if self.cell is not None else ""
        line = f":{self.line}" if self.line is not None else ""
        return f"{path}{cell}{line}: {self.message}"


class Comment(NamedTuple):
    """An ignore comment: where it stands, the lines it counts for (within the cell of a notebook), the rules it names."""

    cell: int | None
    line: int
    first: int
    last: int
    rules: tuple[str, ...]


@dataclass(slots=True)
class Noted:
    """A finding with what only lint knows of it.

    Attributes:
        finding: where it stands may be in another file than the one that was looked at.
        source: the line of code, without the space around it.
        fix: edits of the file that `finding.where` names; of a notebook, of its joined code.
    """

    finding: Finding
    source: str = ""
    fix: Fix | None = None

    @property
    def key(self) -> str:
        """The same for the same occurrence, also where two files led to it."""
        where = self.finding.where
        return f"{self.finding.key}|{where.character}"

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        out: dict[str, object] = {"finding": self.finding.to_dict(), "source": self.source}
        if self.fix is not None:
            edits = [[e.line, e.column, e.end_line, e.end_column, e.text] for e in self.fix.edits]
            out["fix"] = {"edits": edits, "safe": self.fix.safe, "summary": self.fix.summary}
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Noted:
        """The reverse of `to_dict`."""
        fix = data.get("fix")
        return cls(
            Finding.from_dict(data["finding"]),
            str(data["source"]),
            Fix(tuple(Edit(*e) for e in fix["edits"]), bool(fix["safe"]), str(fix["summary"])) if fix else None,
        )


@dataclass(slots=True)
class FileResult:
    """What linting one file gave.

    Attributes:
        path: the file, as it was named.
        noted: what was found, by place.
        troubles: what could not be looked at.
        comments: the ignore comments of the file.
        complaints: cell, line and text of each ignore comment that does not do what its writer wanted.
        hash: of the bytes that were read; empty where there were none.
        used: the project's other files that the facts came from, each with its hash.
        missing: what was imported and not found in the project, as paths without suffix.
    """

    path: str
    noted: list[Noted] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    complaints: list[tuple[int | None, int, str]] = field(default_factory=list)
    hash: str = ""
    used: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    @property
    def read(self) -> bool:
        """Whether anything of it could be looked at."""
        return not any(t.whole for t in self.troubles)

    def to_dict(self) -> dict[str, object]:
        """JSON-ready; what is empty is left out."""
        out: dict[str, object] = {"path": self.path, "hash": self.hash}
        if self.noted:
            out["noted"] = [n.to_dict() for n in self.noted]
        for name in ("troubles", "comments", "complaints", "used", "missing"):
            if value := getattr(self, name):
                out[name] = value
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FileResult:
        """The reverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: a field is missing or not of its kind.
        """
        return cls(
            str(data["path"]),
            [Noted.from_dict(n) for n in data.get("noted", ())],
            [Trouble(*t) for t in data.get("troubles", ())],
            [Comment(c, li, f, la, tuple(r)) for c, li, f, la, r in data.get("comments", ())],
            [(c, li, t) for c, li, t in data.get("complaints", ())],
            str(data["hash"]),
            dict(data.get("used", {})),
            list(data.get("missing", ())),
        )
