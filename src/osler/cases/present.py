"""One case as text: what it is, the faulty lines, what is expected of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from osler.cases.library import Case, HealthyScript

_AROUND = 6  # lines shown before and after the marked one
_SIDES = ("faulty.py", "clean.py")


def describe(case: Case) -> str:
    """Title, source, expectation, the marked line in its surroundings, and the difference to the twin in two files."""
    return "\n".join(_describe(case)) + "\n"


def describe_healthy(script: HealthyScript) -> str:
    """What a healthy script trains, and which false alarms it tempts to."""
    file = script.file
    lines = [f"{script.id}: {file.title}", "", f"file      {script.folder / file.file}"]
    if file.traps:
        lines.append(f"traps     {'; '.join(file.traps)}")
    if file.needs:
        lines.append(f"needs     {', '.join(file.needs)}")
    lines += [
        f"steps     {file.steps}",
        f"takes     about {file.cost_s:g} s",
        "expected  no warning, no error, exit code 0",
    ]
    return "\n".join(lines) + "\n"


def _describe(case: Case) -> Iterator[str]:
    file = case.file
    yield f"{case.id}: {file.case.title}"
    yield ""
    yield f"folder    {case.folder}"
    yield f"shows     {', '.join(file.case.detects)}"
    if file.case.source:
        yield f"source    {file.case.source}"
    if file.case.needs:
        yield f"needs     {', '.join(file.case.needs)}"
    yield f"takes     about {file.case.cost_s:g} s"
    ends = f" (ends with {file.inject.exit_code})" if file.inject.exit_code else ""
    for name, faulty in (("faulty", True), ("clean", False)):
        look = case.look(faulty)
        then = f", then osler {' '.join(look)}" if look else ""
        yield f"{name:<9} python {' '.join(case.script(faulty))}{ends if faulty else ''}{then}"
    yield f"in effect {file.in_effect.expr}"
    yield f"expected  {_expected(case)}"
    if file.observe:
        yield f"observe   {file.observe.promql}"
    yield ""
    yield f"{case.marker}:"
    yield from _excerpt(case)
    difference = list(_difference(case))
    if difference:
        yield ""
        yield from difference


def _expected(case: Case) -> str:
    wanted = case.file.expect.finding
    words = [wanted.rule, "as a root" if wanted.root else "as a root or a symptom"]
    if wanted.by_step is not None:
        words.append(f"by step {wanted.by_step}")
    words += [f"{k} {v}" for k in ("direction", "module", "parameter") if (v := getattr(wanted, k)) is not None]
    words.append(f"at {case.marker}")
    if case.file.expect.also:
        words.append(f"beside {', '.join(case.file.expect.also)}")
    return ", ".join(words)


def _excerpt(case: Case) -> Iterator[str]:
    lines = (case.folder / case.marker.file).read_text(encoding="utf-8", errors="replace").splitlines()
    first, last = max(1, case.marker.line - _AROUND), min(len(lines), case.marker.line + _AROUND)
    width = len(str(last))
    for number in range(first, last + 1):
        mark = ">" if number == case.marker.line else " "
        yield f"{mark} {number:>{width}}  {lines[number - 1]}".rstrip()


def _difference(case: Case) -> Iterator[str]:
    """A unified diff from the faulty to the clean side, where they are two files."""
    faulty, clean = (case.folder / name for name in _SIDES)
    if not (faulty.is_file() and clean.is_file()):
        return
    a, b = (p.read_text(encoding="utf-8", errors="replace").splitlines() for p in (faulty, clean))
    yield from difflib.unified_diff(a, b, *_SIDES, lineterm="")
