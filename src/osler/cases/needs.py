"""What a case needs, and whether it is here."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterable
from importlib import metadata

_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:(>=|<)\s*(\d+(?:\.\d+)*))?")


def missing(needs: Iterable[str]) -> str:
    """Why these needs are not met, in one clause; empty when they are.

    A need is a package (`scikit-learn`, `torch>=2.6`, `torch<2.9`; the name of the distribution or of its module), or
    one of `cuda` (a device node of the driver is there), `linux`, `root`.
    """
    for need in needs:
        why = _missing(need.strip())
        if why:
            return why
    return ""


def _missing(need: str) -> str:
    if need == "cuda":
        # Asking torch would cost its import, two seconds a case.
        return "" if any(os.path.exists(p) for p in ("/dev/nvidiactl", "/dev/dxg")) else "no CUDA device"  # noqa: PTH110
    if need == "linux":
        return "" if sys.platform.startswith("linux") else f"needs Linux, this is {sys.platform}"
    if need == "root":
        return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "needs root"
    match = _REQUIREMENT.fullmatch(need)
    if match is None:
        return f"cannot read the need {need!r}"
    name, relation, bound = match.groups()
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        if relation is None and _importable(name):
            return ""
        return f"{name} is not installed"
    if relation is None:
        return ""
    enough = _release(version) >= _release(bound)
    return "" if enough is (relation == ">=") else f"needs {need}, {version} is installed"


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _release(version: str) -> tuple[int, ...]:
    """The numbers before any suffix, without trailing zeros: `2.13.0+cpu` → (2, 13)."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(n) for n in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
