"""Training and evaluation rows that must be apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Splits:
    """Training and evaluation rows that must be apart."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
