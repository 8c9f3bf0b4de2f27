"""Sources that must line up, and batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources that must line up, and batches."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
