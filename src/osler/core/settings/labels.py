"""Label noise, encoding and class lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Labels:
    """Label noise, encoding and class lists."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
