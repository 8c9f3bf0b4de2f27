"""Writes docs/rules.md from the catalogue and the settings tree.

python scripts/docs.py            write the page
python scripts/docs.py --check    exit 1 if the page is not what it would be written as
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from osler.catalogue import RULES
from osler.core.rule import Rule
from osler.core.settings import Option, options

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"

PARTS = {
    "numbers": (
        "Numbers that stop being numbers",
        "The first NaN or Inf of a training: judged in the step in which it appears, before the optimizer applies it.",
    ),
    "data": (
        "Data",
        "Judged on the data themselves (`osler check`), or on what preprocessing sees while a script runs.",
    ),
    "gradients": (
        "Gradients, activations, weights",
        "Every number is finite and the model still does not learn: judged over a window of steps.",
    ),
    "loop": (
        "The order of the training loop",
        "Calls that are missing, in the wrong order, or made too often: read from the source before anything runs.",
    ),
    "source": (
        "What the source shows",
        "How a program loads, seeds, times and shares out its work: read by `osler lint`, before anything runs.",
    ),
}

HEAD = """# Rules

<!-- Written by scripts/docs.py from src/osler/catalogue and src/osler/core/settings: edit those, then run
`python scripts/docs.py`. -->

Every fault that osler can name. `osler explain RULE` prints the same in a terminal.

Severity says how bad: *error* (the result is wrong or will be), *warning* (it is harmed), *info* (worth knowing).
Confidence, which stands in each finding, says how sure: *definite*, *probable*, *possible* (hidden without `--all`).

To ignore a rule: `# osler: ignore[rule-name] reason` on the line; `ignore = ["rule-name"]` or `per-file-ignores` under
`[tool.osler]` in `pyproject.toml`; `--ignore rule-name` on the command line.
"""


def page() -> str:
    """The whole page."""
    parts: dict[str, list[Rule]] = {}
    for rule in RULES.values():
        parts.setdefault(rule.part, []).append(rule)
    lines = [HEAD]
    for part, rules in parts.items():
        title, about = PARTS.get(part, (part.capitalize(), ""))
        lines += [f"## {title}", "", about, "", *_overview(rules), ""]
        for rule in rules:
            lines += _rule(rule)
    lines += _settings()
    return "\n".join(lines).rstrip() + "\n"


def _overview(rules: list[Rule]) -> Iterator[str]:
    yield "| rule | severity | the fault |"
    yield "|---|---|---|"
    for rule in rules:
        yield f"| {_link(rule.name)} | {rule.severity.label} | {_cell(rule.summary)} |"


def _rule(rule: Rule) -> Iterator[str]:
    caused_by = [other.name for other in RULES.values() if rule.name in other.causes]
    yield from (f"### {rule.name}", "", f"**{rule.severity.label}.** {rule.summary}", "")
    yield from (_prose(rule.why), "", f"**Fix.** {_prose(rule.fix)}", "")
    yield from ("Faulty:", "", "```python", rule.bad.strip("\n"), "```", "")
    yield from ("Mended:", "", "```python", rule.good.strip("\n"), "```", "")
    if rule.causes:
        yield from (f"**Brings about:** {', '.join(map(_link, rule.causes))}.", "")
    if caused_by:
        yield from (f"**Brought about by:** {', '.join(map(_link, caused_by))}.", "")
    yield from ("**Noticed by:** " + ", ".join(f"`osler {route}`" for route in rule.routes) + ".", "")
    steering = [option for option in options() if rule.name in option.rules]
    if steering:
        names = ", ".join(f"`{option.name}` ({_default(option)})" for option in steering)
        yield from (f"**Thresholds:** {names}.", "")
    yield from (f"**Limits.** {_prose(rule.limits)}", "")
    if rule.links:
        yield from ("Read more:", "", *(f"- <{link}>" for link in rule.links), "")


def _settings() -> Iterator[str]:
    yield from (
        "## Settings",
        "",
        "Every threshold, its default and where the default comes from. Set them in `pyproject.toml`",
        "(`[tool.osler.gradients]`, then `window = 32`), in `osler.toml` without the `tool.osler` prefix, or on the command",
        "line (`--set gradients.window=32`). `osler config show` prints those in force and where each was set.",
        "",
        "| setting | default | what it does | where the default comes from |",
        "|---|---|---|---|",
    )
    for option in options():
        yield f"| `{option.name}` | {_default(option)} | {_cell(option.doc)} | {_cell(option.source)} |"


def _default(option: Option) -> str:
    return f"`{json.dumps(option.default)}`"


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _link(name: str) -> str:
    return f"[{name}](#{name})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    wanted = page()
    if parser.parse_args(arguments).check:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == wanted:
            return 0
        sys.stderr.write("docs/rules.md is out of date; run `python scripts/docs.py`\n")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
