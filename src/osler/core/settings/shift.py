"""Covariate shift of many columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Shift:
    """Covariate shift of many columns at once."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
