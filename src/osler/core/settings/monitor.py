"""Drift watched window by window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Monitor:
    """Drift watched window by window."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
