"""`osler explain`: what a fault is, why it hurts, how to mend it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from osler.core.rule import Rule
from osler.core.settings import Option
from osler.render.pen import QUIET, SEVERITY_STYLE, Pen


def print_explain(rule: Rule, console: Console, settings_options: Iterable[Option] = ()) -> None:
    """Print all that the catalogue knows of a rule.

    Args:
        rule: the rule.
        console: where to.
        settings_options: the settings tree (`osler.core.settings.options()`); those that steer the rule are printed.
    """
    pen = Pen(console)
    pen.line(
        (rule.name, "bold"), ("  ", ""), (rule.severity.label, SEVERITY_STYLE[rule.severity]), (f", {rule.part}", QUIET)
    )
    pen.line(rule.summary)
    _prose(pen, "Why it hurts", rule.why)
    _code(pen, "Faulty", rule.bad)
    _code(pen, "Mended", rule.good)
    _prose(pen, "Fix", rule.fix)
    if rule.causes:
        _prose(pen, "Brings about", ", ".join(rule.causes))
    _prose(pen, "Noticed by", ", ".join(f"osler {route}" for route in rule.routes))
    steering = [o for o in settings_options if rule.name in o.rules]
    if steering:
        _title(pen, "Thresholds")
        for option in steering:
            pen.line((option.name, "bold"), f" = {option.default!r}", indent=2, hang=4)
            pen.line(_sentence(option.doc), indent=4)
            pen.line((f"Default from: {option.source}", QUIET), indent=4)
    _prose(pen, "Limits", rule.limits)
    if rule.links:
        _title(pen, "Read more")
        for link in rule.links:
            pen.line(link, indent=2)
    _title(pen, "To ignore it")
    pen.line((f"# osler: ignore[{rule.name}] reason", "bold"), ("    on the line", QUIET), indent=2)
    pen.line((f'[tool.osler] ignore = ["{rule.name}"]', "bold"), ("    in pyproject.toml", QUIET), indent=2)


def _title(pen: Pen, text: str) -> None:
    pen.blank()
    pen.line((text, "bold"))


def _prose(pen: Pen, title: str, text: str) -> None:
    if text.strip():
        _title(pen, title)
        for paragraph in text.strip().split("\n\n"):
            pen.line(" ".join(paragraph.split()), indent=2)


def _code(pen: Pen, title: str, source: str) -> None:
    if source.strip():
        _title(pen, title)
        pen.code(source, indent=4)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""
