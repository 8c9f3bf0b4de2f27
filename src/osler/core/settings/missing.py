"""Missing values and outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Missing:
    """Missing values and outliers."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
