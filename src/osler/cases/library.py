"""Finding and reading case folders: the casebook that ships with osler, or a folder of the user's own."""

from __future__ import annotations

import difflib
import fnmatch
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from osler.app.errors import UserError
from osler.cases.model import CaseFile, HealthyFile, HealthyFileScript, ModelError, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

CASE_FILE = "case.toml"
SCRIPT = "repro.py"
HEALTHY = "_healthy"
HEALTHY_FILE = "healthy.toml"
MARKER = re.compile(r"#\s*fault-here\b")


class CasebookError(UserError):
    """A case folder cannot be used, or none was found. `lines` holds one clear line a problem."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = list(lines)


@dataclass(frozen=True, slots=True)
class Marker:
    """The line that carries `# fault-here`: the path relative to the case's folder and the 1-based line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Case:
    """A case folder that has been read and found in order."""

    folder: Path
    file: CaseFile
    marker: Marker

    @property
    def id(self) -> str:
        """Name of the case and of its folder."""
        return self.file.case.id

    @property
    def rule(self) -> str:
        """The rule that its faulty side must give."""
        return self.file.expect.finding.rule

    @property
    def rules(self) -> frozenset[str]:
        """The rules that belong to it: the expected one and what it detects besides."""
        return frozenset(self.file.case.detects)

    @property
    def cost_s(self) -> float:
        """Seconds that both sides take together."""
        return self.file.case.cost_s

    @property
    def needs(self) -> list[str]:
        """What must be installed or present."""
        return self.file.case.needs

    @property
    def of_data(self) -> bool:
        """Its faults stand in columns, not in lines."""
        return self.file.check is not None

    def script(self, faulty: bool) -> list[str]:
        """The script of a side, and its arguments."""
        if self.file.lint is not None:
            return [self.file.lint.faulty if faulty else self.file.lint.clean]
        return [SCRIPT, self.file.inject.flag if faulty else self.file.twin.flag]

    def look(self, faulty: bool) -> list[str]:
        """What follows `osler` once the script has run in plain Python; empty where the script itself is watched."""
        if self.file.check is not None:
            return ["check", *self.file.check.args]
        return ["lint", *self.script(faulty)] if self.file.lint is not None else []


@dataclass(frozen=True, slots=True)
class HealthyScript:
    """A script without a fault, on which osler must stay silent."""

    folder: Path
    file: HealthyFileScript

    @property
    def id(self) -> str:
        """Name of the script."""
        return self.file.id

    @property
    def cost_s(self) -> float:
        """Seconds that it takes."""
        return self.file.cost_s

    @property
    def needs(self) -> list[str]:
        """What must be installed or present."""
        return self.file.needs

    @property
    def look(self) -> list[str]:
        """What follows `osler` once the script has run in plain Python; empty where the script itself is watched."""
        return ["check", *self.file.check] if self.file.check else []


def casebook_root() -> Path:
    """The folder of the casebook that ships with osler.

    Raises:
        CasebookError: this installation has none.
    """
    root = Path(str(resources.files("osler").joinpath("casebook")))
    if not root.is_dir():
        raise CasebookError(["this installation of osler has no casebook; install osler from its wheel"])
    return root


def case_folders(root: Path | None = None) -> list[Path]:
    """The case folders under `root` (or `root` itself, if it is one), by name, unread.

    Raises:
        CasebookError: `root` is no folder.
    """
    where = casebook_root() if root is None else root
    if not where.is_dir():
        raise CasebookError([f"{where} is no folder"])
    if (where / CASE_FILE).is_file():
        return [where.resolve()]
    return sorted(d for d in where.iterdir() if (d / CASE_FILE).is_file() and not d.name.startswith(("_", ".")))


def scan(root: Path | None = None) -> tuple[list[Case], dict[str, list[str]]]:
    """The cases that can be used, and for each other folder (by name) what is wrong with it.

    Raises:
        CasebookError: `root` is no folder.
    """
    cases: list[Case] = []
    broken: dict[str, list[str]] = {}
    for folder in case_folders(root):
        try:
            cases.append(load_case(folder))
        except CasebookError as err:
            broken[folder.name] = err.lines
    return cases, broken


def load_cases(root: Path | None = None) -> list[Case]:
    """Every case under `root` (default: the casebook that ships with osler), by id.

    Raises:
        CasebookError: one of them cannot be used.
    """
    cases, broken = scan(root)
    if broken:
        raise CasebookError([line for lines in broken.values() for line in lines])
    return cases


def load_case(folder: Path) -> Case:
    """The case in `folder`.

    Raises:
        CasebookError: `case.toml` is not TOML or does not fit its model, its id is not the folder's name, `repro.py` is
            missing, or `# fault-here` does not stand on exactly one line.
    """
    path = folder / CASE_FILE
    try:
        file = read(CaseFile, _toml(path))
    except ModelError as err:
        raise CasebookError([f"{_name(path)}: {line}" for line in err.lines]) from None
    lines: list[str] = []
    if file.case.id != folder.name:
        lines.append(f"{_name(path)}: [case] id is {file.case.id!r} but the folder is called {folder.name!r}")
    scripts = [SCRIPT] if file.lint is None else [file.lint.faulty, file.lint.clean]
    lines += [f"{folder.name}: {script} is missing" for script in scripts if not (folder / script).is_file()]
    markers = find_markers(folder)
    if len(markers) != 1:
        seen = f"on {', '.join(map(str, markers))}" if markers else "nowhere"
        lines.append(
            f"{folder.name}: '# fault-here' must stand on exactly one line of its Python files; it stands {seen}"
        )
    if lines:
        raise CasebookError(lines)
    return Case(folder, file, markers[0])


def find_markers(folder: Path) -> list[Marker]:
    """Every line under `folder` that carries `# fault-here`."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        relative = path.relative_to(folder)
        if any(part.startswith((".", "__pycache__")) for part in relative.parts):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if MARKER.search(line):
                found.append(Marker(relative.as_posix(), number))
    return found


def load_healthy(root: Path | None = None) -> list[HealthyScript]:
    """The healthy scripts of a casebook; none if it has no `_healthy` folder.

    They are listed in `healthy.toml` and in the `.toml` files of the folders beside it; files are named from `_healthy`.

    Raises:
        CasebookError: a list is not in order, names a file that is not there, or an id that another has.
    """
    folder = (casebook_root() if root is None else root) / HEALTHY
    out: dict[str, HealthyScript] = {}
    for path in [*folder.glob(HEALTHY_FILE), *sorted(folder.glob("*/*.toml"))]:
        try:
            file = read(HealthyFile, _toml(path))
        except ModelError as err:
            raise CasebookError([f"{_name(path)}: {line}" for line in err.lines]) from None
        problems = [f"{_name(path)}: {s.file} is missing" for s in file.script if not (folder / s.file).is_file()]
        problems += [f"{_name(path)}: another script has the id {s.id!r} too" for s in file.script if s.id in out]
        if problems:
            raise CasebookError(problems)
        out.update((s.id, HealthyScript(folder, s)) for s in file.script)
    return list(out.values())


def select(
    cases: Sequence[Case], patterns: Iterable[str], healthy: Sequence[HealthyScript] = ()
) -> tuple[list[Case], list[HealthyScript]]:
    """The cases and healthy scripts that the patterns name.

    A pattern is an id, a glob over ids (`*-overflow`), or the name of a rule: all its cases, unless a case has that id.
    A healthy script is named by its id or by `_healthy/<id>`.

    Raises:
        CasebookError: a pattern names nothing; the line offers the closest ids.
    """
    chosen: dict[str, Case] = {}
    chosen_healthy: dict[str, HealthyScript] = {}
    lost: list[str] = []
    for pattern in patterns:
        hits = [c for c in cases if fnmatch.fnmatchcase(c.id, pattern)] or [c for c in cases if pattern in c.rules]
        quiet = [h for h in healthy if _is_healthy(h, pattern)]
        chosen.update((c.id, c) for c in hits)
        chosen_healthy.update((h.id, h) for h in quiet)
        if not hits and not quiet:
            known = [c.id for c in cases] + [h.id for h in healthy]
            close = difflib.get_close_matches(pattern, known, n=3, cutoff=0.5)
            hint = f"closest: {', '.join(close)}" if close else "`osler cases list` shows them all"
            lost.append(f"no case, healthy script or rule with a case is called {pattern!r}; {hint}")
    if lost:
        raise CasebookError(lost)
    return list(chosen.values()), list(chosen_healthy.values())


def _is_healthy(script: HealthyScript, pattern: str) -> bool:
    return fnmatch.fnmatchcase(script.id, pattern) or fnmatch.fnmatchcase(f"{HEALTHY}/{script.id}", pattern)


def _toml(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise CasebookError([f"{_name(path)}: not TOML: {err}"]) from None
    except OSError as err:
        raise CasebookError([f"{_name(path)}: {err.strerror}"]) from None
    return data


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
