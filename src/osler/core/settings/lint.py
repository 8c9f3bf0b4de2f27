"""Which files `osler lint` reads, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, SHARE, Bounds, threshold

EXCLUDED = [
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".osler",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
]


@dataclass(frozen=True, slots=True)
class Lint:
    """Which files `osler lint` reads, and how."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    exclude: list[str] = threshold(
        EXCLUDED,
        "globs of files and folders that are left out, held against the name and against the path below the folder that "
        "was asked for; what is named on the command line is always read",
        "as in ruff, and `build`, `__pycache__`",
    )
    extend_exclude: list[str] = threshold([], "globs left out besides `exclude`", "as in ruff")
    respect_gitignore: bool = threshold(True, "leave out what git ignores", "as in ruff")
    torch: str = threshold(
        "",
        "version of torch to assume, `2.6`; empty: the one that is installed beside osler",
        "what a call does by default changes with the version",
    )
    jobs: int = threshold(0, "processes at work; 0: one a core", "as in other linters", bounds=Bounds(0, 256))
    max_mb: float = threshold(
        4.0,
        "size of a source in MB beyond which it is left out",
        "a judgement: beyond this it is data",
        bounds=POSITIVE,
    )
    seconds: float = threshold(
        20.0,
        "processor time after which a file is given up",
        "a judgement: long enough for any file that people write",
        bounds=POSITIVE,
    )
    scheduler_calls: int = threshold(
        1000,
        "calls of a scheduler's step by which `scheduler_left` is judged",
        "a judgement: an epoch alone has often as many batches",
        rules=("scheduler-per-batch",),
        bounds=Bounds(1),
    )
    scheduler_left: float = threshold(
        1e-3,
        "share of the learning rate below which a schedule that leaves no more after `scheduler_calls` calls is not taken "
        "for one that is meant in batches",
        "a judgement: with less than a thousandth nothing is learned any more",
        rules=("scheduler-per-batch",),
        bounds=SHARE,
    )
    scheduler_patience: int = threshold(
        100,
        "patience from which on a ReduceLROnPlateau that is stepped with every batch may be meant in batches",
        "a judgement: ten times torch's default, which is meant in epochs",
        rules=("scheduler-per-batch",),
        bounds=Bounds(1),
    )
    cache: bool = threshold(True, "keep what was found in files that have not changed", "as in ruff")
    baseline: str = threshold("", "file of findings that are known already; empty: none", "this project")
    warn_unused_ignores: bool = threshold(
        False,
        "report every ignore comment that ignores nothing, also where `osler run` may still need it",
        "as mypy's option of that name",
    )
