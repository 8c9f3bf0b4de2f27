"""What the monitors of gradients and activations share."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.frames import Line, is_user
from osler.syntax.classes import method_line
from osler.training.recorder import Recorder


def make(
    recorder: Recorder,
    rule: str,
    message: str,
    *,
    line: Line | None,
    step: int,
    first_step: int,
    fix: str,
    evidence: dict[str, object],
    touches: Iterable[str],
    severity: Severity = Severity.WARNING,
    confidence: Confidence = Confidence.DEFINITE,
    **where: Any,
) -> Finding:
    """A finding with the recorder's surroundings filled in."""
    rank = None
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        rank = torch.distributed.get_rank()
    place = Where(
        file=line.file if line else None,
        line=line.line if line else None,
        function=line.function if line else None,
        step=step,
        epoch=recorder.epoch,
        rank=rank,
        **where,
    )
    return Finding(
        rule, severity, confidence, message, place, evidence, fix, None, first_step, step, 1, frozenset(touches)
    )


def number(value: Any) -> str:
    """A number as people write it: three significant digits."""
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def listed(names: list[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def users_class(module: torch.nn.Module) -> bool:
    """Whether the module's class is written in the user's code."""
    return source_of(type(module)) is not None


def source_of(cls: type) -> str | None:
    """The user's source file that holds a class, None where the class is a library's."""
    try:
        path = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None
    return path if path is not None and is_user(path) else None


def forward_line(module: torch.nn.Module) -> Line | None:
    """The line of `def forward` of the module's class."""
    cls = type(module)
    path = source_of(cls)
    if path is None:
        return None
    line = method_line(path, cls.__qualname__, "forward")
    return Line(path, line, "forward") if line is not None else None


def owner_of(root: torch.nn.Module, parameter: str) -> tuple[str, torch.nn.Module]:
    """The innermost module of a user's class that holds the parameter, with its path; the root where there is none."""
    parts = parameter.split(".")[:-1]
    best: tuple[str, torch.nn.Module] = ("", root)
    module: Any = root
    for i, part in enumerate(parts):
        module = getattr(module, part, None)
        if not isinstance(module, torch.nn.Module):
            break
        if users_class(module):
            best = (".".join(parts[: i + 1]), module)
    return best
