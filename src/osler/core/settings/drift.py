"""Drift of single columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of single columns."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
