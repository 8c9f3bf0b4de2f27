"""The join of rules, cases, detectors, thresholds and causes: what one of them promises and another does not keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from osler.cases.library import Case
from osler.core.rule import Rule
from osler.core.settings import Option

# The text of a rule that `osler explain` shows; each has to say something.
TEXTS = ("part", "summary", "why", "fix", "bad", "good", "limits")
ROUTES = frozenset({"run", "lint", "check", "watch"})
_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def gaps() -> list[str]:
    """One line for everything that is missing or contradicts itself in the catalogue, casebook, settings and detectors.

    Raises:
        osler.cases.library.CasebookError: a case folder cannot be read.
    """
    from osler.cases.library import load_cases
    from osler.catalogue import RULES
    from osler.core.settings import options
    from osler.data.checks import CHECKS, GUARDS

    detectors = _detectors()
    out = [
        *rule_gaps(RULES),
        *cause_gaps(RULES),
        *case_gaps(RULES, load_cases()),
        *threshold_gaps(RULES, options()),
        *check_gaps(RULES, CHECKS),
    ]
    if detectors is None:
        return [*out, "osler.training.monitors has no DETECTORS"]
    return [*out, *detector_gaps(RULES, {**detectors, **GUARDS})]


def rule_gaps(rules: Mapping[str, Rule]) -> Iterator[str]:
    """Rules without a text, under another name than their own, or noticed by no route."""
    for name, rule in rules.items():
        if rule.name != name or not _KEBAB.fullmatch(name):
            yield f"rule {name}: it calls itself {rule.name!r}; names are kebab-case"
        for text in TEXTS:
            if not str(getattr(rule, text)).strip():
                yield f"rule {name}: {text} is empty"
        if not rule.routes:
            yield f"rule {name}: no route notices it"
        for route in sorted(set(rule.routes) - ROUTES):
            yield f"rule {name}: {route!r} is no route"


def cause_gaps(rules: Mapping[str, Rule]) -> Iterator[str]:
    """Edges to unknown rules, and a circle of causes if there is one."""
    for name, rule in rules.items():
        for effect in rule.causes:
            if effect not in rules:
                yield f"rule {name}: it causes {effect!r}, which is no rule"
    circle = find_circle({name: rule.causes for name, rule in rules.items()})
    if circle:
        yield f"the causes form a circle: {' → '.join(circle)}"


def case_gaps(rules: Mapping[str, Rule], cases: Sequence[Case]) -> Iterator[str]:
    """Rules without a case, cases of unknown rules, cases that do not say where they come from."""
    shown = {case.rule for case in cases}
    for name in rules:
        if name not in shown:
            yield f"rule {name}: no case expects it"
    for case in cases:
        for name in [*case.file.case.detects, *case.file.expect.also]:
            if name not in rules:
                yield f"case {case.id}: {name!r} is no rule"
        if not case.file.case.source.strip():
            yield f"case {case.id}: it has no source"


def threshold_gaps(rules: Mapping[str, Rule], settings: Iterable[Option]) -> Iterator[str]:
    """Settings of unknown rules, without a source, or without a word on what they do."""
    for option in settings:
        for name in option.rules:
            if name not in rules:
                yield f"setting {option.name}: it steers {name!r}, which is no rule"
        for text in ("doc", "source"):
            if not getattr(option, text).strip():
                yield f"setting {option.name}: {text} is empty"


def detector_gaps(rules: Mapping[str, Rule], detectors: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Rules with the route `run` that no detector names, and detectors that name no rule or an unknown one."""
    detected: set[str] = set()
    for detector, names in detectors.items():
        listed = list(names)
        detected.update(listed)
        if not listed:
            yield f"detector {detector}: it detects nothing"
        for name in listed:
            if name not in rules:
                yield f"detector {detector}: {name!r} is no rule"
    for name, rule in rules.items():
        if "run" in rule.routes and name not in detected:
            yield f"rule {name}: no detector names it"


def check_gaps(rules: Mapping[str, Rule], checks: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Rules with the route `check` that no check names, and checks of unknown rules or of rules without that route."""
    checked = {name for names in checks.values() for name in names}
    for verb, names in checks.items():
        for name in names:
            if name not in rules:
                yield f"check {verb}: {name!r} is no rule"
            elif "check" not in rules[name].routes:
                yield f"check {verb}: {name} has no route `check`"
    for name, rule in rules.items():
        if "check" in rule.routes and name not in checked:
            yield f"rule {name}: no check names it"


def find_circle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """A circle in the graph, its first node again at the end; empty if there is none."""
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = []

        def enter(node: str, path: list[str] = path, stack: list[tuple[str, Iterator[str]]] = stack) -> None:
            path.append(node)
            stack.append((node, iter(edges.get(node, ()))))

        if start not in done:
            enter(start)
        while stack:
            node, successors = stack[-1]
            following = next(successors, None)
            if following is None:
                stack.pop()
                path.pop()
                done.add(node)
            elif following in path:
                return [*path[path.index(following) :], following]
            elif following not in done:
                enter(following)
    return []


def _detectors() -> dict[str, list[str]] | None:
    """For each detector of a training run the rules that it names; None where there is no table of detectors."""
    try:
        from osler.training import monitors
    except ImportError:
        return None
    table = getattr(monitors, "DETECTORS", None)
    if table is None:
        return None
    return {name: list(_detects(kind)) for name, kind in table.items()}


def _detects(kind: object) -> Iterable[str]:
    names = getattr(kind, "detects", ())
    return [n.name if isinstance(n, Rule) else str(n) for n in names]
