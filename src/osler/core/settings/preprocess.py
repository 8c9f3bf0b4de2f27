"""Fitted preprocessing: what it saw, and whether it is still the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Preprocess:
    """Fitted preprocessing: what it saw, and whether it is still the same."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
