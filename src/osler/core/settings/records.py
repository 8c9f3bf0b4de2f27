"""What is kept, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import POSITIVE, Bounds, threshold


@dataclass(frozen=True, slots=True)
class Dump:
    """The bundle written when a number stops being one."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    enabled: bool = threshold(True, "write a bundle of the failing step (`--no-dump` switches it off)", "this project")
    max_mb: float = threshold(
        512.0, "largest bundle in MiB; parameters are left out first, then inputs", "a judgement", bounds=POSITIVE
    )


@dataclass(frozen=True, slots=True)
class Records:
    """What is kept in `.osler/`."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    keep_runs: int = threshold(
        200, "runs kept; the oldest beyond it are pruned after a run", "this project", bounds=Bounds(1, 1e9)
    )
    keep_days: float = threshold(90.0, "age in days after which a run is pruned", "this project", bounds=POSITIVE)
    max_mb: float = threshold(
        2048.0, "size of `.osler/` in MiB above which the oldest runs are pruned", "this project", bounds=Bounds(1)
    )
    flush_s: float = threshold(
        2.0,
        "longest time in seconds that a curve's points wait in memory",
        "live findings are written at once",
        bounds=Bounds(0, 3600),
    )
