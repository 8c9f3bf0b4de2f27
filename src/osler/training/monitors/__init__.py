"""What judges. One file per family of rules; each class names the rules that it `detects`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "NumberMonitor": "numbers",
    "MagnitudeMonitor": "magnitudes",
    "UnitMonitor": "units",
    "OwnershipMonitor": "ownership",
    "DetachedMonitor": "detached",
}

DETECTORS: dict[str, type]
"""Every monitor by name; together they detect every rule of the parts `numbers` and `gradients`."""


def __getattr__(name: str) -> Any:
    # On demand: the monitor of numbers brings the whole replay along, which a healthy training never needs.
    if name == "DETECTORS":
        found = {cls: getattr(import_module(f"{__name__}.{home}"), cls) for cls, home in _HOMES.items()}
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
