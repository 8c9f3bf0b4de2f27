"""Every threshold has a name, a default with its source, and a place in this tree.

Set them in `pyproject.toml` (`[tool.osler.gradients] vanishing_ratio = 1e-6`), in `osler.toml` (without the `tool.osler`
prefix) or on the command line (`--set gradients.vanishing_ratio=1e-6`). `osler explain RULE` prints those of a rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar

from osler.core.settings.data import Data
from osler.core.settings.drift import Drift
from osler.core.settings.field import Bounds, threshold
from osler.core.settings.labels import Labels
from osler.core.settings.lint import Lint
from osler.core.settings.missing import Missing
from osler.core.settings.monitor import Monitor
from osler.core.settings.preprocess import Preprocess
from osler.core.settings.records import Dump, Records
from osler.core.settings.shift import Shift
from osler.core.settings.sources import Sources
from osler.core.settings.splits import Splits
from osler.core.settings.training import Budget, Gradients, Numbers

__all__ = [
    "Bounds",
    "Budget",
    "Data",
    "Drift",
    "Dump",
    "Gradients",
    "Labels",
    "Lint",
    "Missing",
    "Monitor",
    "Numbers",
    "Option",
    "Preprocess",
    "Records",
    "Settings",
    "Shift",
    "Sources",
    "Splits",
    "build",
    "options",
    "threshold",
]


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole tree."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    budget: Budget = dataclasses.field(default_factory=Budget)
    numbers: Numbers = dataclasses.field(default_factory=Numbers)
    gradients: Gradients = dataclasses.field(default_factory=Gradients)
    data: Data = dataclasses.field(default_factory=Data)
    splits: Splits = dataclasses.field(default_factory=Splits)
    preprocess: Preprocess = dataclasses.field(default_factory=Preprocess)
    labels: Labels = dataclasses.field(default_factory=Labels)
    drift: Drift = dataclasses.field(default_factory=Drift)
    monitor: Monitor = dataclasses.field(default_factory=Monitor)
    shift: Shift = dataclasses.field(default_factory=Shift)
    missing: Missing = dataclasses.field(default_factory=Missing)
    sources: Sources = dataclasses.field(default_factory=Sources)
    lint: Lint = dataclasses.field(default_factory=Lint)
    dump: Dump = dataclasses.field(default_factory=Dump)
    records: Records = dataclasses.field(default_factory=Records)
    select: list[str] = threshold([], "rules to judge; empty means all", "this project")
    ignore: list[str] = threshold([], "rules never to report", "this project")
    per_file_ignores: dict[str, list[str]] = threshold({}, "glob of file → rules not reported there", "as in ruff")
    fail_on: str = threshold(
        "",
        "severity from which the exit code is 1; empty: `warning` for checks, never for `run`, which gives the script's own",
        "linters fail on what they report; `run` must not change what the script says",
        choices=("", "info", "warning", "error"),
    )


@dataclass(frozen=True, slots=True)
class Option:
    """One setting as documentation: its dotted name, default, what it does, where the default comes from, its bounds."""

    name: str
    default: object
    doc: str
    source: str
    rules: tuple[str, ...]
    bounds: Bounds = Bounds()
    choices: tuple[str, ...] = ()


def options(tree: type = Settings, prefix: str = "") -> Iterator[Option]:
    """Every setting of the tree, in order."""
    for f in fields(tree):
        default = _default(f)
        if is_dataclass(default):
            yield from options(type(default), f"{prefix}{f.name}.")
        else:
            yield Option(name=prefix + f.name, default=default, **f.metadata)


def _default(f: Field[Any]) -> object:
    return f.default if f.default is not MISSING else f.default_factory() if f.default_factory is not MISSING else None


def build(tree: Mapping[str, Any]) -> Settings:
    """Settings from a nested mapping that has been validated before (or was made by `dataclasses.asdict`)."""
    sections: dict[str, Any] = {f.name: type(d) for f in fields(Settings) if is_dataclass(d := _default(f))}
    return Settings(**{k: sections[k](**v) if k in sections else v for k, v in tree.items()})
