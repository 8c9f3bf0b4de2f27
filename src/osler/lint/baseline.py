"""Findings that a team knows already: matched by rule, file, line of code and occurrence, whatever the line's number."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from osler.lint.result import Noted

_FORM = 1

# file as the baseline names it, rule, line of code without its spacing
Known = tuple[str, str, str]


class NoBaseline(ValueError):
    """A file that is no baseline; the message is one sentence."""


@dataclass(slots=True)
class Baseline:
    """Findings that are known, and how many of each.

    Attributes:
        folder: the one that the files are named from.
        counts: how often each is known to occur.
    """

    folder: str
    counts: Counter[Known] = field(default_factory=Counter)

    @classmethod
    def load(cls, path: Path) -> Baseline:
        """Read a baseline.

        Raises:
            NoBaseline: it cannot be read, or is none.
        """
        try:
            data = json.loads(path.read_text("utf-8"))
        except OSError as error:
            hint = (
                f"; write it with `--baseline {path} --write-baseline`" if isinstance(error, FileNotFoundError) else ""
            )
            raise NoBaseline(f"the baseline {path} cannot be read: {error.strerror or error}{hint}") from None
        except (ValueError, RecursionError) as error:
            raise NoBaseline(f"{path} is no baseline: {error}") from None
        try:
            if data["osler_baseline"] != _FORM:
                raise NoBaseline(f"{path} is a baseline of another version of osler; write it anew")
            counts: Counter[Known] = Counter()
            for entry in data["findings"]:
                counts[str(entry["file"]), str(entry["rule"]), str(entry["code"])] += int(entry.get("count", 1))
        except NoBaseline:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise NoBaseline(f"{path} is no baseline: it does not have the form of one") from None
        return cls(_folder(path), counts)

    @classmethod
    def of(cls, noted: Iterable[Noted], path: Path) -> Baseline:
        """The baseline of these findings, to be written to that file."""
        baseline = cls(_folder(path))
        baseline.counts.update(baseline.key(one) for one in noted)
        return baseline

    def key(self, noted: Noted) -> Known:
        """What makes a finding a known one."""
        file = noted.finding.where.file or ""
        name = os.path.relpath(os.path.abspath(file), self.folder).replace(os.sep, "/")
        return name, noted.finding.rule, " ".join(noted.source.split())

    def new(self, noted: Iterable[Noted]) -> list[Noted]:
        """Those that are not known: of equal ones the first are taken to be the known ones."""
        left = self.counts.copy()
        out = []
        for one in noted:
            key = self.key(one)
            if left[key] > 0:
                left[key] -= 1
            else:
                out.append(one)
        return out

    def stale(self, noted: Iterable[Noted], files: Iterable[str]) -> int:
        """How many known findings are no more, among the files that were looked at and those that are gone."""
        looked = {os.path.relpath(os.path.abspath(f), self.folder).replace(os.sep, "/") for f in files}
        now = Counter(self.key(one) for one in noted)
        return sum(
            max(count - now[key], 0)
            for key, count in self.counts.items()
            if key[0] in looked or not os.path.lexists(os.path.join(self.folder, key[0]))
        )

    def save(self, path: Path) -> None:
        """Write it, in order.

        Raises:
            OSError: it cannot be written.
        """
        entries = []
        for (file, rule, code), count in sorted(self.counts.items()):
            entry: dict[str, object] = {"file": file, "rule": rule, "code": code}
            if count > 1:
                entry["count"] = count
            entries.append(entry)
        lines = ",\n".join("    " + json.dumps(e) for e in entries)
        findings = f"[\n{lines}\n  ]" if lines else "[]"
        path.write_text(f'{{\n  "osler_baseline": {_FORM},\n  "findings": {findings}\n}}\n', encoding="utf-8")


def _folder(path: Path) -> str:
    return os.path.dirname(os.path.realpath(path))
