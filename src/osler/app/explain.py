"""`osler explain`: what a fault is, why it hurts, how to mend it, and what osler cannot see of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from osler.app.errors import UserError
from osler.catalogue import RULES, UnknownRule, rule
from osler.core.rule import Rule
from osler.core.settings import Option, options

if TYPE_CHECKING:
    from rich.console import Console


def find(name: str) -> Rule:
    """The rule of that name.

    Raises:
        UserError: there is none; the message offers the closest names.
    """
    try:
        return rule(name)
    except UnknownRule as err:
        raise UserError(str(err)) from None


def by_part() -> dict[str, list[Rule]]:
    """All rules, grouped by the section of the catalogue, in its order."""
    parts: dict[str, list[Rule]] = {}
    for each in RULES.values():
        parts.setdefault(each.part, []).append(each)
    return parts


def thresholds(name: str) -> list[Option]:
    """The settings that steer a rule."""
    return [option for option in options() if name in option.rules]


def caused_by(name: str) -> list[str]:
    """The rules that bring this one about."""
    return [each.name for each in RULES.values() if name in each.causes]


def to_dict(each: Rule) -> dict[str, object]:
    """A rule as JSON-ready data, with its thresholds and what brings it about."""
    out: dict[str, object] = {f.name: getattr(each, f.name) for f in dataclasses.fields(each)}
    out["severity"] = each.severity.label
    out["caused_by"] = caused_by(each.name)
    out["thresholds"] = [
        {"name": o.name, "default": o.default, "doc": o.doc, "source": o.source} for o in thresholds(each.name)
    ]
    return out


def show(name: str | None, as_json: bool = False) -> None:
    """Print one rule, or the table of all, on stdout.

    Raises:
        UserError: no rule has that name.
    """
    if as_json:
        import json

        data: object = [to_dict(each) for each in RULES.values()] if name is None else to_dict(find(name))
        print(json.dumps(data, indent=2, ensure_ascii=False))  # noqa: T201
        return
    each = find(name) if name is not None else None

    from rich.console import Console

    console = Console()
    if each is None:
        _table(console)
        return
    from osler.render.explain import print_explain

    print_explain(each, console, options())


def _table(console: Console) -> None:
    from osler.render.pen import SEVERITY_STYLE, Pen

    pen = Pen(console)
    wide = max(map(len, RULES)) + 2
    for part, members in by_part().items():
        pen.line((part, "bold"))
        for each in members:
            severity = (f"{each.severity.label:<9}", SEVERITY_STYLE[each.severity])
            pen.line(f"{each.name:<{wide}}", severity, each.summary, indent=2, hang=wide + 11)
        pen.blank()
    pen.line("`osler explain RULE` says why a fault hurts and how to mend it.")
