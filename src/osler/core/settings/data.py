"""What all checks of data share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from osler.core.settings.field import threshold


@dataclass(frozen=True, slots=True)
class Data:
    """Checks of data."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    show_values: bool = threshold(
        False,
        "name the categories of a column in reports; otherwise they are numbered by frequency in the reference",
        "reports hold no raw values: a category may be a name or an address",
    )
